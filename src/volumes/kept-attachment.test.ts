import assert from "node:assert/strict";
import { test } from "node:test";
import { csiSpec } from "../../test/support/csi-scene.ts";
import { ManualClock, settle } from "../../test/support/manual-clock.ts";
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
      request: async () => ({
        ...{ volumeName: "d^h", handle: "h", attachmentName: "csi-h" },
        ...{ limitReached: undefined, changed: undefined },
      }),
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
    message: /^MountVolume.WaitForAttach failed for volume "pv" : volume h has GET error for volume attachment csi-h: /,
  });
});

test("a running pod's volume waits no longer once its driver needs no attachment", async () => {
  const node = new NodeVolumes();
  const change = Promise.withResolvers<void>();
  let isWanted = true;
  const names = { volumeName: "d^h", handle: "h", attachmentName: "csi-h" };
  const wanted = { ...names, limitReached: undefined, changed: change.promise };
  const attachment = keptAttachment(
    {
      clock: new ManualClock(),
      attachments: new Attachments({ clock: new ManualClock(), storage: new TestStorage(), node, byController: true }),
      remarks: new VolumeRemarks({ record: () => 0 }),
    },
    { pod: podWith({ containers: [{ name: "app" }] }), memory: { remarks: new Map() } },
    { spec: csiSpec(), request: async () => (isWanted ? wanted : undefined) },
    new AbortController().signal,
  );
  const attached = attachment.wait();
  await settle();
  assert.deepEqual(node.used, ["d^h"]);
  isWanted = false;
  change.resolve();
  await settle();
  assert.deepEqual(node.used, []);
  assert.equal(await attached, undefined);
});
