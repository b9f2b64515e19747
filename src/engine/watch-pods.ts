import type { Pod } from "../api/pod.ts";
import type { PodStatus } from "../api/status.ts";
import type { Emitter } from "../base/emitter.ts";
import type { PodUid } from "../base/ids.ts";
import type { PodRef } from "../journal/entry.ts";
import type { PodWorkers } from "../pods/pod-workers.ts";
import type { PodNews } from "../pods-api/pods-service.ts";
import type { StatusManager } from "../status/status-manager.ts";

export interface PodWatchDependencies {
  readonly statuses: Pick<StatusManager, "onChange" | "onContinued">;
  readonly workers: Pick<PodWorkers, "onEnded">;
  readonly pod: (uid: PodUid) => Pod | undefined;
  /** The current pods: the watcher has them already. */
  readonly refs: readonly PodRef[];
  /** UIDs of removed pods. */
  readonly gone: Pick<Emitter<PodUid>, "on">;
}

/**
 * Reports pods until disposed of, as upstream's status manager does: added with their first status of this run, whatever
 * the API server had of them before, modified as it changes, and deleted once they have ended and released what they
 * held, though the API server may keep them. The listener must not throw.
 */
export function watchPods(
  { statuses, workers, pod, refs, gone }: PodWatchDependencies,
  listener: (news: PodNews) => void,
): Disposable {
  const known = new Map(refs.map((ref) => [ref.uid, ref]));
  const ended = new Set<PodUid>();
  const tell = (ref: PodRef, status: PodStatus): void => {
    const own = pod(ref.uid);
    if (own === undefined || ended.has(ref.uid)) return;
    const isNew = !known.has(ref.uid) && own.metadata.deletionTimestamp === undefined;
    known.set(ref.uid, ref);
    listener({ type: isNew ? "added" : "modified", pod: { pod: own, status } });
  };
  const tellDeleted = (uid: PodUid): void => {
    const ref = known.get(uid);
    if (known.delete(uid) && ref !== undefined) listener({ type: "deleted", ref });
  };
  const watches = [
    statuses.onChange(({ pod: ref, status }) => tell(ref, status)),
    statuses.onContinued(({ pod: ref, status }) => {
      if (!known.has(ref.uid)) tell(ref, status);
    }),
    workers.onEnded((uid) => {
      ended.add(uid);
      tellDeleted(uid);
    }),
    gone.on((uid) => {
      ended.delete(uid);
      tellDeleted(uid);
    }),
  ];
  return {
    [Symbol.dispose]: () => {
      for (const watch of watches) watch[Symbol.dispose]();
    },
  };
}
