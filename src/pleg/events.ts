import type { PodUid } from "../base/ids.ts";
import type { NameOf } from "../journal/vocabulary.ts";
import type { ContainerState } from "../runtime/status/pod-status.ts";
import type { PodRecord } from "./pod-records.ts";

export type ContainerEventType =
  | "ContainerStarted"
  | "ContainerDied"
  | "ContainerRemoved"
  /** A state that is neither running nor exited (created, unknown): not delivered, as upstream. */
  | "ContainerChanged";

export interface PodLifecycleEvent {
  /** PodSync: the pod was inspected on request; it is unchanged. */
  readonly type: ContainerEventType | "PodSync";
  readonly uid: PodUid;
  /** Runtime ID of the container or sandbox; empty for PodSync. */
  readonly id: string;
  /** Container name; empty for a sandbox and for PodSync. */
  readonly container: string;
}

/** The change of a container or sandbox. */
export interface ContainerEvent extends PodLifecycleEvent {
  readonly type: ContainerEventType;
}

const sandboxEvent = {
  ContainerStarted: "SandboxStarted",
  ContainerDied: "SandboxDied",
  ContainerRemoved: "SandboxRemoved",
} as const satisfies Partial<Record<ContainerEventType, NameOf<"observation">>>;

/** The journal's name for the change. A sandbox is either ready or not. */
export function observationOf({ type, container }: ContainerEvent): NameOf<"observation"> {
  return container !== "" || type === "ContainerChanged" ? type : sandboxEvent[type];
}

type ObservedState = ContainerState | "absent";

/**
 * What happened to a pod between two inspections: upstream's computeEvents for all of its containers, in the order
 * removed, died, started. A container that appeared and disappeared between two inspections counts as died.
 */
export function computeEvents(
  uid: PodUid,
  before: PodRecord | undefined,
  now: PodRecord | undefined,
): ContainerEvent[] {
  const ids = new Set([...(before?.containers.keys() ?? []), ...(now?.containers.keys() ?? [])]);
  const events: ContainerEvent[] = [];
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

const order: Record<ContainerEventType, number> = {
  ContainerDied: 0,
  ContainerRemoved: 1,
  ContainerChanged: 2,
  ContainerStarted: 3,
};

function transition(was: ObservedState, is: ObservedState): ContainerEventType[] {
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
      // Removed without having been seen exited: it also died.
      return was === "exited" ? ["ContainerRemoved"] : ["ContainerDied", "ContainerRemoved"];
  }
}
