import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { CriError } from "../ports/cri.ts";
import { ContainerSchema, ContainerStatusResponseSchema, ImageSchema } from "../ports/gen/runtime/v1/api_pb.js";
import { imagesInUse, knownImages } from "./known-images.ts";
import { mountedImages } from "./mounted-images.ts";

const options = { signal: new AbortController().signal, timeoutMs: 1000 };

test("an image that a container has as a volume is in use, also once its name is another image's", async () => {
  const containers = ["web", "gone"].map((id) => create(ContainerSchema, { id, metadata: { name: id } }));
  const mounts = [{ containerPath: "/data", hostPath: "/data" }, { image: { image: "sha256:old" } }];
  const runtime = {
    containerStatus: async ({ containerId = "" }) => {
      if (containerId === "gone") throw new CriError("NotFound", "ContainerStatus", "no such container");
      return create(ContainerStatusResponseSchema, { status: { mounts } });
    },
  };
  const mounted = await mountedImages(runtime, containers, options);
  const images = ["old", "other"].map((id) => create(ImageSchema, { id: `sha256:${id}` }));
  assert.deepEqual([...imagesInUse({ images, containers, mounted }).keys()], ["sha256:old"]);
  const found = { images, containers, mounted, wanted: [], isLeased: () => false, sandboxImage: "" };
  const times = () => ({ detectedMs: 0, lastUsedMs: undefined });
  const known = knownImages({ ...found, foreign: new Set() }, times, { namespace: "ns", pod: "pod" });
  assert.deepEqual(
    known.map(({ hold }) => hold?.text),
    ["in use by container web", undefined],
  );
});

test("a runtime that cannot say what is mounted stops the collection", async () => {
  const runtime = {
    containerStatus: async () => {
      throw new CriError("Unavailable", "ContainerStatus", "down");
    },
  };
  await assert.rejects(mountedImages(runtime, [create(ContainerSchema, { id: "web" })], options), /down/);
});
