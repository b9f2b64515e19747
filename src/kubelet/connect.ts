import type { Pod } from "../api/pod.ts";
import type { Cause } from "../journal/entry.ts";
import { refused } from "../pods/rejection.ts";
import { pendingResize } from "../status/resources.ts";
import type { KubeletDependencies } from "./dependencies.ts";
import type { Manager } from "./manager.ts";
import type { Managers } from "./managers.ts";

/** The second phase: passes each manager those that were built after it. */
export function connect(
  managers: Managers,
  rows: readonly Manager[],
  {
    cluster,
    api,
    objects,
    volumes,
    rooms = [],
  }: Pick<KubeletDependencies, "cluster" | "api" | "objects" | "volumes" | "rooms">,
): void {
  const { acting, allocations, gate, identity, killer, pods, probes, startUp, statuses, syncLoop, workers } = managers;
  identity.connect((change) => gate.handle(change));
  gate.connect((change) => syncLoop.handle(change));
  probes.results.onChange(({ pod, result, cause }) => {
    workers.get(pod.uid)?.probed(cause, result === "failure");
  });
  workers.connect({
    stopped: (isWanted) => syncLoop.roomMade(isWanted),
    released: (uid) => {
      cluster?.podReleased(uid);
      for (const room of rooms) room.released?.(uid);
    },
    removed: (uid) => {
      for (const row of rows) row.remove?.(uid);
    },
  });
  allocations.connect({
    // Pods that wait for resources were promised them.
    activePods: () => [...workers.holding(), ...pods.waiting().map((pod) => allocations.allocatedPod(pod))],
    known: (uid) => pods.isKnown(uid),
    isOver: (uid) => (workers.get(uid)?.state.kind ?? "syncing") !== "syncing",
    ready: () => gate.hasPassedAll(),
    objection: (wanted, granted, others) => syncLoop.objection(wanted, granted, others),
    lastTold: (pod) => pendingResize(pod, statuses.get(pod.metadata.uid)),
    changed: (uid, cause) => workers.wake(uid, cause),
  });
  acting.volumes.connect((pod, rejection, entry) => void killer.kill(pod, refused(rejection, entry)));
  const restart = (pod: Pod, cause: Cause): void => {
    for (const op of ["remove", "add"] as const) syncLoop.handle({ op, pod, cause });
  };
  const ready = (): boolean => gate.hasPassedAll();
  const services = {
    pods,
    startUp,
    workers,
    ready,
    images: acting.images,
    killer,
    api,
    objects,
    volumesInUse: volumes?.node,
    storageWaits: acting.storageWaits,
    storage: volumes?.storage,
    restart,
  };
  for (const room of rooms) room.connect?.(services);
}
