import assert from "node:assert/strict";
import { test } from "node:test";
import { csiSpec } from "../../test/support/csi-scene.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { podWith } from "../../test/support/pods.ts";
import { TestStorage } from "../../test/support/storage.ts";
import { NodeVolumes } from "../node/node-volumes.ts";
import { Attachments } from "./attachments.ts";
import { keptAttachment } from "./kept-attachment.ts";
import { VolumeRemarks } from "./volume-remarks.ts";

test("a running pod's volume that waits long for its attachment says so, and what is wrong has upstream's words", async () => {
  const [clock, storage, node] = [new ManualClock(), new TestStorage(), new NodeVolumes()];
  const told: string[] = [];
  const attachment = keptAttachment(
    {
      clock,
      attachments: new Attachments({ clock, storage, node, byController: true }),
      remarks: new VolumeRemarks({ record: ({ what }) => told.push(what) }),
    },
    { pod: podWith({ containers: [{ name: "app" }] }), memory: { remarks: new Map() } },
    {
      spec: csiSpec(),
      request: async () => ({ volumeName: "d^h", attachmentName: "csi-h", limitReached: undefined }),
    },
    new AbortController().signal,
  );
  const attached = attachment.wait();
  await clock.advance(29_000);
  assert.deepEqual(told, []);
  await clock.advance(11_000);
  assert.deepEqual(told, ["VolumeUnattached"]);
  storage.attachments.set("csi-h", { metadata: { name: "csi-h" }, status: { attached: true } });
  node.seen({ volumesInUse: ["d^h"], volumesAttached: [{ name: "d^h" }] });
  await clock.advance(10_000);
  assert.deepEqual(await attached, { attachmentName: "csi-h", metadata: {} });
  assert.deepEqual(told, ["VolumeUnattached", "VolumeWaitOver"]);
  storage.attachments.clear();
  await assert.rejects(attachment.look(), {
    message: /^MountVolume.WaitForAttach failed for volume "pv" : GET error for volume attachment csi-h: /,
  });
});
