import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import type { Cri } from "../../ports/cri.ts";
import { ContainerStatusResponseSchema } from "../../ports/gen/runtime/v1/api_pb.js";
import type { Mount } from "./container-config.ts";
import { ignoredImageSubPath } from "./image-mounts.ts";

/** A runtime that reports these mounts of its only container. */
function reporting(mounts: Mount[], asked: string[] = []): Cri {
  const containerStatus = async ({ containerId = "" }) => {
    asked.push(containerId);
    return create(ContainerStatusResponseSchema, { status: { mounts } });
  };
  return { runtime: { containerStatus } } as unknown as Cri;
}

const whole = { containerPath: "/a", hostPath: "", image: { image: "sha256:1" } };
const part = { ...whole, imageSubPath: "etc" };

test("a runtime that mounts the whole image in place of a subPath is recognised", async () => {
  const seen = async (reported: Mount): Promise<string | undefined> =>
    await ignoredImageSubPath(reporting([reported]), { mounts: [part] }, "id");
  assert.equal(await seen({ ...whole, hostPath: "/run/image-volumes/1" }), "etc", "as containerd 2.1");
  assert.equal(await seen({ ...part, hostPath: "/run/image-volumes/1" }), undefined);
  assert.equal(await seen({ ...whole, hostPath: "/run/image-volumes/1/etc" }), undefined);
  assert.equal(await seen({ containerPath: "/a", hostPath: "/x" }), undefined, "it reports no images");
  assert.equal(await seen({ ...whole, containerPath: "/b" }), undefined);
});

test("a runtime is not queried for images that are mounted as a whole", async () => {
  const asked: string[] = [];
  assert.equal(await ignoredImageSubPath(reporting([], asked), { mounts: [whole] }, "id"), undefined);
  assert.deepEqual(asked, []);
});
