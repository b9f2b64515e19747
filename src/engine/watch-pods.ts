import type { Pod } from "../api/pod.ts";
import type { PodRef } from "../journal/entry.ts";
import type { PodNews } from "../pods-api/pods-service.ts";
import type { StatusManager } from "../status/status-manager.ts";

export interface PodWatchDependencies {
  readonly statuses: Pick<StatusManager, "onChange">;
  readonly pod: (uid: string) => Pod | undefined;
  /** The pods that there are now. */
  readonly refs: readonly PodRef[];
  /** Called with the UIDs of pods that are gone from the node. */
  readonly gone: Set<(uid: string) => void>;
}

/** Tells of pods as their statuses change and as they go, until disposed of. The listener must not throw. */
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
  const onGone = (uid: string): void => {
    const ref = known.get(uid);
    if (known.delete(uid) && ref !== undefined) listener({ type: "deleted", ref });
  };
  gone.add(onGone);
  return {
    [Symbol.dispose]: () => {
      changes[Symbol.dispose]();
      gone.delete(onGone);
    },
  };
}
