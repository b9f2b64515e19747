import type { Pod } from "../api/pod.ts";
import type { Emitter } from "../base/emitter.ts";
import type { PodUid } from "../base/ids.ts";
import type { PodRef } from "../journal/entry.ts";
import type { PodNews } from "../pods-api/pods-service.ts";
import type { StatusManager } from "../status/status-manager.ts";

export interface PodWatchDependencies {
  readonly statuses: Pick<StatusManager, "onChange">;
  readonly pod: (uid: PodUid) => Pod | undefined;
  /** The current pods. */
  readonly refs: readonly PodRef[];
  /** UIDs of removed pods. */
  readonly gone: Emitter<PodUid>;
}

/** Reports pods as their statuses change and as they are removed, until disposed of. The listener must not throw. */
export function watchPods(
  { statuses, pod, refs, gone }: PodWatchDependencies,
  listener: (news: PodNews) => void,
): Disposable {
  const known = new Map(refs.map((ref) => [ref.uid, ref]));
  const changes = statuses.onChange(({ pod: ref, previous, status }) => {
    const own = pod(ref.uid);
    if (own === undefined) return;
    known.set(ref.uid, ref);
    listener({ type: previous === undefined ? "added" : "modified", pod: { pod: own, status } });
  });
  const removals = gone.on((uid) => {
    const ref = known.get(uid);
    if (known.delete(uid) && ref !== undefined) listener({ type: "deleted", ref });
  });
  return {
    [Symbol.dispose]: () => {
      changes[Symbol.dispose]();
      removals[Symbol.dispose]();
    },
  };
}
