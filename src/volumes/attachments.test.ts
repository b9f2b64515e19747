import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock, settle } from "../../test/support/manual-clock.ts";
import { podWith } from "../../test/support/pods.ts";
import type { VolumeAttachment } from "../api/volume-attachment.ts";
import { NodeVolumes } from "../node/node-volumes.ts";
import type { StorageLookup } from "../objects/storage-lookup.ts";
import { Attachments, nextLookMs } from "./attachments.ts";
import type { AttachmentRequest } from "./volume-plugin.ts";

const volumeName = "kubernetes.io/csi/d^v";
const names = { volumeName, handle: "v", attachmentName: "a" };
const request: AttachmentRequest = { ...names, limitReached: undefined, changed: undefined };
const pod = podWith({}, { creationTimestamp: "1970-01-01T00:00:00Z" });

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
  let isAttached = false;
  const attached = attachments
    .attached({ pod, request: async () => request, waiting: () => {} }, AbortSignal.timeout(10_000))
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

test("a limit that the driver reports is seen within a second, and later within a twentieth of the wait", async () => {
  for (const [reportedAtMs, latestMs] of [
    [300, 1000],
    [19_500, 1000],
    [100_500, 5025],
    [1_000_000, 10_000],
  ] as const) {
    const clock = new ManualClock(0);
    let looks = 0;
    const attachError = { message: "no place for another volume", errorCode: 8 };
    const storage = {
      attachment: async (): Promise<VolumeAttachment> => {
        looks++;
        return { metadata: { name: "a" }, status: clock.monotonic() < reportedAtMs ? {} : { attachError } };
      },
    } satisfies Partial<StorageLookup> as unknown as StorageLookup;
    let seenAtMs: number | undefined;
    const limitReached = (): void => void (seenAtMs = clock.monotonic());
    const attachments = new Attachments({ clock, node: new NodeVolumes(), storage, byController: true });
    const limited = async (): Promise<AttachmentRequest> => ({ ...request, limitReached });
    const attached = attachments.attached({ pod, request: limited, waiting: () => {} }, new AbortController().signal);
    attached.catch(() => {});
    while (seenAtMs === undefined) await clock.advance(500);
    assert.ok(seenAtMs - reportedAtMs <= latestMs, `${reportedAtMs} ms: seen at ${seenAtMs} ms`);
    assert.ok(looks <= 20 + seenAtMs / 5000 + 60, `${looks} looks in ${seenAtMs} ms`);
    await assert.rejects(attached, { name: "AttachLimitError" });
  }
});

test("many volumes that wait are read ten times a second together", () => {
  assert.equal(nextLookMs(0, 1), 1000);
  assert.equal(nextLookMs(0, 10), 1000);
  assert.equal(nextLookMs(0, 200), 20_000);
  assert.equal(nextLookMs(60_000, 1), 3000);
  assert.equal(nextLookMs(3_600_000, 3), 10_000);
});

test("of a published volume only the VolumeAttachment is read, whatever the Node lists", async () => {
  const answers: (VolumeAttachment | Error)[] = [
    { metadata: { name: "a" }, status: { attached: true, attachmentMetadata: { disk: "b" } } },
    { metadata: { name: "a", deletionTimestamp: "2026-01-01T00:00:00Z" }, status: { attached: true } },
    { metadata: { name: "a" }, status: { attached: false } },
    new Error("not found"),
  ];
  const storage = {
    attachment: async (): Promise<VolumeAttachment> => {
      const answer = answers.shift();
      if (answer === undefined || answer instanceof Error) throw answer ?? new Error("too many looks");
      return answer;
    },
  } satisfies Partial<StorageLookup> as unknown as StorageLookup;
  const attachments = new Attachments({
    clock: new ManualClock(),
    node: new NodeVolumes(),
    storage,
    byController: true,
  });
  const look = () => attachments.look(request, new AbortController().signal);
  assert.deepEqual(await look(), { attachmentName: "a", metadata: { disk: "b" } });
  await assert.rejects(look(), { message: "volume attachment is being deleted" });
  await assert.rejects(look(), { message: "volume v is not attached for volume attachment a" });
  await assert.rejects(look(), { message: "volume v has GET error for volume attachment a: not found" });
});
