import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { silentLog } from "../../test/support/sources.ts";
import { podUid } from "../base/ids.ts";
import type { AskedImage } from "../journal/observer.ts";
import { CriError } from "../ports/cri.ts";
import { ImageStatusResponseSchema, PullImageResponseSchema } from "../ports/gen/runtime/v1/api_pb.js";
import { MemoryFiles } from "../sim/files.ts";
import { simHashing } from "../sim/hashing.ts";
import { simProcesses } from "../sim/machine.ts";
import { defaultImageLimits } from "./image-manager.ts";
import type { PullService } from "./image-puller.ts";
import { makeImages } from "./make-images.ts";
import type { PullPolicy } from "./pull-decision.ts";

/** Has the given images, and can pull every other but one. */
function runtimeWith(present: Set<string>): PullService {
  return {
    imageStatus: async ({ image }) => {
      const name = image?.image ?? "";
      if (name.startsWith("odd")) throw new CriError("Unknown", "ImageStatus", "no answer");
      return create(ImageStatusResponseSchema, present.has(name) ? { image: { id: `sha256:${name}` } } : {});
    },
    pullImage: async ({ image }) => {
      const name = image?.image ?? "";
      if (name.startsWith("nowhere")) throw new CriError("NotFound", "PullImage", "no such image");
      present.add(name);
      return create(PullImageResponseSchema, { imageRef: `sha256:${name}` });
    },
  };
}

/** A node that records each request for an image, and the verification before it. */
function world() {
  const [clock, told, present] = [new ManualClock(), [] as string[], new Set(["brought:1", "secret:1", "broken:1"])];
  const files = new MemoryFiles(clock);
  const observer = {
    imageAsked: (policy: string, asked: AskedImage) => told.push(`${policy} ${asked.present} ${asked.pulls}`),
    accessJudged: (judgement: string) => told.push(judgement),
  };
  const deps = { clock, files, hashing: simHashing, log: silentLog, processes: simProcesses, observer };
  const { manager, leases } = makeImages(
    { ...deps, images: runtimeWith(present), journal: { record: () => 1 } },
    {
      images: {
        ...defaultImageLimits,
        ...{ verification: { policy: "NeverVerifyPreloadedImages", allowlist: [] }, credentialFiles: [] },
      },
      node: { rootDirectory: "/kubelet" },
    },
  );
  const pod = { namespace: "default", name: "web", uid: podUid("u") };
  const cause = { code: "ContainerMissing", message: "" } as const;
  const asked = async (image: string, pullPolicy: PullPolicy): Promise<string[]> => {
    const request = { pod, container: "c", image, pullPolicy, sandboxConfig: {}, lease: leases.take(), cause };
    await manager.ensureImageExists(request, new AbortController().signal).catch(() => {});
    return told.splice(0);
  };
  const record = async (image: string, text: string): Promise<void> => {
    const directory = "/kubelet/image_manager/pulled";
    await files.makeDirectory(directory, 0o700);
    await files.write(`${directory}/sha256-${simHashing.sha256(`sha256:${image}`)}`, text, 0o600);
  };
  return { asked, record };
}

test("each request for an image is recorded with its outcome", async () => {
  const { asked } = world();
  assert.deepEqual(await asked("UPPER", "IfNotPresent"), ["IfNotPresent undefined undefined"]);
  assert.deepEqual(await asked("odd:1", "IfNotPresent"), ["IfNotPresent undefined undefined"]);
  assert.deepEqual(await asked("app:1", "Never"), ["Never false undefined"]);
  assert.deepEqual(await asked("app:1", "Always"), ["Always undefined true"]);
  assert.deepEqual(await asked("other:1", "IfNotPresent"), ["IfNotPresent false true"]);
  // The second time it is in back-off: nothing is pulled, though a pull is required.
  for (const _time of [1, 2]) assert.deepEqual(await asked("nowhere:1", "IfNotPresent"), ["IfNotPresent false true"]);
});

test("each verification of access to a present image is recorded with its consequence", async () => {
  const { asked, record } = world();
  assert.deepEqual(await asked("brought:1", "Never"), ["credentialPolicyAllowed", "Never true false"]);
  await asked("app:1", "Always");
  assert.deepEqual(await asked("app:1", "IfNotPresent"), ["credentialRecordFound", "IfNotPresent true false"]);
  await record("secret:1", JSON.stringify({ imageRef: "sha256:secret:1", lastUpdatedTime: "2026-01-02T03:04:05Z" }));
  assert.deepEqual(await asked("secret:1", "Never"), ["mustAuthenticate", "Never true true"]);
  await record("broken:1", "{");
  assert.deepEqual(await asked("broken:1", "IfNotPresent"), ["error", "IfNotPresent true true"]);
});
