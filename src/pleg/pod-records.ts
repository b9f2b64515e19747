import type { PodUid } from "../base/ids.ts";
import { type LikelyIds, type ListedPod, noIds } from "../runtime/status/inspect.ts";
import type { ContainerState, PodStatus } from "../runtime/status/pod-status.ts";

/** The record of one container or sandbox. Sandboxes count as containers here, as upstream. */
export interface RecordedContainer {
  /** Empty for a sandbox. */
  readonly name: string;
  readonly state: ContainerState;
}

/** A pod's containers and sandboxes by runtime ID: the basis of events. */
export interface PodRecord {
  readonly name: string;
  readonly namespace: string;
  readonly containers: ReadonlyMap<string, RecordedContainer>;
}

/** The record of an inspection; comparable with that of a listing. */
export function recordOf(status: PodStatus): PodRecord {
  const containers = new Map<string, RecordedContainer>();
  for (const sandbox of status.sandboxes) {
    containers.set(sandbox.id, { name: "", state: sandbox.ready ? "running" : "exited" });
  }
  for (const container of status.containers) {
    containers.set(container.id, { name: container.name, state: container.state });
  }
  return { name: status.name, namespace: status.namespace, containers };
}

/** The record of a listing. */
export function recordOfListing(pod: ListedPod | undefined): PodRecord | undefined {
  if (pod === undefined) return undefined;
  const containers = new Map<string, RecordedContainer>();
  for (const [id, sandbox] of pod.sandboxes) {
    containers.set(id, { name: "", state: sandbox.ready ? "running" : "exited" });
  }
  for (const [id, container] of pod.containers) containers.set(id, container);
  return { name: pod.name, namespace: pod.namespace, containers };
}

/** The likely IDs of the pod: those seen, and those named since. */
export function likelyIds(record: PodRecord | undefined, named: LikelyIds = noIds): LikelyIds {
  const recorded = [...(record?.containers ?? [])];
  const ids = (isSandbox: boolean): string[] =>
    recorded.filter(([, { name }]) => (name === "") === isSandbox).map(([id]) => id);
  return {
    sandboxes: new Set([...ids(true), ...named.sandboxes]),
    containers: new Set([...ids(false), ...named.containers]),
  };
}

/** True when both have the same IDs in the same states. */
export function sameRecord(a: PodRecord | undefined, b: PodRecord | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  if (a.containers.size !== b.containers.size) return false;
  for (const [id, container] of a.containers) {
    if (b.containers.get(id)?.state !== container.state) return false;
  }
  return true;
}

/** The last record of every pod (upstream's podRecords). */
export type PodRecords = Map<PodUid, PodRecord>;
