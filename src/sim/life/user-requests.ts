import { NodeCollection } from "../../engine/node-collection.ts";
import type { ImageRoom } from "../../engine/image-room.ts";
import type { EvictionManager } from "../../eviction/manager.ts";
import type { PodUid } from "../../base/ids.ts";
import type { Recorder } from "../../journal/entry.ts";
import type { Kubelet } from "../../kubelet/kubelet.ts";
import type { Cri } from "../../ports/cri.ts";

/** The parts of one incarnation that answer users. */
export interface AskedParts {
  readonly kubelet: Kubelet;
  readonly images: ImageRoom;
  readonly evictions: EvictionManager | undefined;
  readonly cri: Pick<Cri, "runtime">;
  readonly journal: Recorder;
}

/** `podwright retry POD` */
export function askRetry({ kubelet, journal }: AskedParts, uid: PodUid): void {
  const message = "a user requested an immediate retry";
  const ref = kubelet.pods.list().find(({ view }) => view.ref.uid === uid)?.view.ref;
  const entry = journal.record({ kind: "input", what: "RetryRequested", message, ...(ref && { pod: ref }) });
  kubelet.workers.retryNow(uid, { code: "RetryRequested", message, entry });
}

/** `podwright gc`, rejected until all pods are known. Failures are reported only to the user. */
export function askCollection({ kubelet, images, cri, journal }: AskedParts, signal: AbortSignal): void {
  if (!kubelet.garbage.isReady) return;
  const collection = new NodeCollection({ cri, garbage: kubelet.garbage, images: images.collector, journal });
  collection.collect(signal).catch(() => {});
}

/** `podwright evict --confirm` */
export function askConfirmation({ evictions, journal }: AskedParts): void {
  if (evictions === undefined) return;
  const message = "a user allowed evictions by the current settings";
  journal.record({ kind: "input", what: "EvictionsConfirmed", message });
  evictions.confirm().catch(() => {});
}
