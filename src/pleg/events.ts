import type { PodUid } from "../base/ids.ts";
import type { ContainerState } from "../runtime/status/pod-status.ts";
import type { PodRecord } from "./pod-records.ts";

export type PodLifecycleEventType =
  | "ContainerStarted"
  | "ContainerDied"
  | "ContainerRemoved"
  /** A state that is neither running nor over (created, unknown): not delivered, as upstream does it. */
  | "ContainerChanged"
  /** The pod was inspected on request; nothing of it changed. */
  | "PodSync";

export interface PodLifecycleEvent {
  readonly type: PodLifecycleEventType;
  readonly uid: PodUid;
  /** Runtime id of the container or sandbox; empty for PodSync. */
  readonly id: string;
  /** Container name; empty for a sandbox and for PodSync. */
  readonly container: string;
}

type ObservedState = ContainerState | "absent";

/**
 * What happened to a pod between two looks at it: upstream's computeEvents for all of its containers, in the order
 * gone, died, started. A container that came and went between two looks counts as died.
 */
export function computeEvents(
  uid: PodUid,
  before: PodRecord | undefined,
  now: PodRecord | undefined,
): PodLifecycleEvent[] {
  const ids = new Set([...(before?.containers.keys() ?? []), ...(now?.containers.keys() ?? [])]);
  const events: PodLifecycleEvent[] = [];
  for (const id of ids) {
    const was = before?.containers.get(id);
    const is = now?.containers.get(id);
    const container = is?.name ?? was?.name ?? "";
    for (const type of transition(was?.state ?? "absent", is?.state ?? "absent")) {
      events.push({ type, uid, id, container });
    }
  }
  return events.sort((a, b) => order[a.type] - order[b.type]);
}

const order: Record<PodLifecycleEventType, number> = {
  ContainerDied: 0,
  ContainerRemoved: 1,
  ContainerChanged: 2,
  ContainerStarted: 3,
  PodSync: 4,
};

function transition(was: ObservedState, is: ObservedState): PodLifecycleEventType[] {
  if (was === is) return [];
  switch (is) {
    case "running":
      return ["ContainerStarted"];
    case "exited":
      return ["ContainerDied"];
    case "created":
    case "unknown":
      return ["ContainerChanged"];
    case "absent":
      // Gone without having been seen dead: it died as well.
      return was === "exited" ? ["ContainerRemoved"] : ["ContainerDied", "ContainerRemoved"];
  }
}
