import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock, settle } from "../../test/support/manual-clock.ts";
import type { VolumeAttachment } from "../api/volume-attachment.ts";
import { podUid } from "../base/ids.ts";
import { NodeVolumes } from "../node/node-volumes.ts";
import type { StorageLookup } from "../objects/storage-lookup.ts";
import { Attachments } from "./attachments.ts";

const volumeName = "kubernetes.io/csi/d^v";

test("a volume that left the Node's lists while its VolumeAttachment was read is waited for again", async () => {
  const reads: PromiseWithResolvers<VolumeAttachment>[] = [];
  const storage = {
    attachment: () => {
      const read = Promise.withResolvers<VolumeAttachment>();
      reads.push(read);
      return read.promise;
    },
  } satisfies Partial<StorageLookup> as unknown as StorageLookup;
  const node = new NodeVolumes();
  const attachments = new Attachments({ clock: new ManualClock(), node, storage, byController: true });
  const listed = { volumesInUse: [volumeName], volumesAttached: [{ name: volumeName }] };
  const isThere: VolumeAttachment = { metadata: { name: "a" }, status: { attached: true } };
  node.use(volumeName, "another pod");
  node.seen(listed);
  const request = { volumeName, attachmentName: "a", limitReached: undefined };
  let isAttached = false;
  const attached = attachments
    .attached(request, podUid("uid"), () => {}, AbortSignal.timeout(10_000))
    .then(() => (isAttached = true));
  await settle();
  node.seen({ volumesInUse: [], volumesAttached: [] });
  reads[0]?.resolve(isThere);
  await settle();
  assert.equal(isAttached, false);
  node.seen(listed);
  await settle();
  reads[1]?.resolve(isThere);
  await attached;
  assert.equal(reads.length, 2);
});
