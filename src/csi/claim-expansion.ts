import type { PersistentVolume } from "../api/persistent-volume.ts";
import type { PersistentVolumeClaim } from "../api/persistent-volume-claim.ts";
import { type Quantity, readQuantity, zeroQuantity } from "../resources/quantity.ts";

/**
 * How the claim of a growing volume is updated. recorded: its status shows each step, as resizers since KEP-1790
 * require. unrecorded: an older resizer's claim only gets the final state, if it lacks it. elsewhere: another node has
 * already expanded the volume. done: nodes have nothing to expand.
 */
export type ExpansionWay = "recorded" | "unrecorded" | "elsewhere" | "done";

/** An expansion that a claim requests from this node, and the target size. */
export interface WantedExpansion {
  readonly way: ExpansionWay;
  readonly size: Quantity;
}

/** On claims whose driver's controller completes expansions alone. */
const notOnNodes = "volume.kubernetes.io/node-expansion-not-required";

type Condition = NonNullable<NonNullable<PersistentVolumeClaim["status"]>["conditions"]>[number];

/** Conditions of a resize; its completion removes all of them. */
const resizeConditions: ReadonlySet<string> = new Set([
  "FileSystemResizePending",
  "Resizing",
  "ControllerResizeError",
  "NodeResizeError",
]);

/** The size of a PersistentVolume. Pure. */
export function volumeSize({ spec }: PersistentVolume): Quantity {
  return sizeOf(spec.capacity);
}

/** The usable size in a claim's status. Pure. */
export function claimSize({ status }: PersistentVolumeClaim): Quantity {
  return sizeOf(status?.capacity);
}

/** The size that the claim's spec requests. Pure. */
export function requestedSize({ spec }: PersistentVolumeClaim): Quantity {
  return sizeOf(spec.resources?.requests);
}

function sizeOf(amounts: Readonly<Record<string, string>> | undefined): Quantity {
  return readQuantity(amounts?.["storage"] ?? "") ?? zeroQuantity;
}

export function isLess(a: Quantity, b: Quantity): boolean {
  return a.nanos < b.nanos;
}

/**
 * How the node should expand the volume; undefined: its claim does not request it, or no longer. Pure.
 * @param volume the size of its PersistentVolume
 */
export function wantedExpansion(claim: PersistentVolumeClaim, volume: Quantity): WantedExpansion | undefined {
  const { allocatedResourceStatuses, allocatedResources } = claim.status ?? {};
  const status = allocatedResourceStatuses?.["storage"] ?? "";
  if (status === "" && allocatedResources === undefined) return { way: "unrecorded", size: volume };
  // The size allocated by the resizer. The PersistentVolume may be larger because of an earlier request.
  const size = sizeOf(allocatedResources);
  if (status === "NodeResizePending" || status === "NodeResizeInProgress") return { way: "recorded", size };
  if (status !== "" || isLess(claimSize(claim), size)) return undefined;
  const isShared = claim.spec.accessModes?.includes("ReadWriteMany") === true;
  return { way: isShared && claim.metadata.annotations?.[notOnNodes] === undefined ? "elsewhere" : "done", size };
}

/** Patches of a claim's status, with the claim as it was read as a precondition. Pure. */
export function inProgressPatch(claim: PersistentVolumeClaim): object {
  return patchOf(claim, { allocatedResourceStatuses: { storage: "NodeResizeInProgress" } });
}

export function finishedPatch(claim: PersistentVolumeClaim, size: Quantity): object {
  const conditions = (claim.status?.conditions ?? []).filter(({ type }) => !resizeConditions.has(type));
  return patchOf(claim, {
    capacity: { storage: size.toString() },
    allocatedResourceStatuses: { storage: null },
    conditions,
  });
}

/**
 * @param isInfeasible the driver will never do it: the resizer should choose another size
 * @param time RFC 3339
 */
export function failedPatch(
  claim: PersistentVolumeClaim,
  problem: string,
  isInfeasible: boolean,
  time: string,
): object {
  const type = "NodeResizeError";
  const conditions = claim.status?.conditions ?? [];
  const before = conditions.find((condition) => condition.type === type && condition.status === "True");
  const failed: Condition = {
    type,
    status: "True",
    lastTransitionTime: before?.lastTransitionTime ?? time,
    message: `failed to expand pvc with ${problem}`,
  };
  return patchOf(claim, {
    conditions: [...conditions.filter((condition) => condition.type !== type), failed],
    ...(isInfeasible && { allocatedResourceStatuses: { storage: "NodeResizeInfeasible" } }),
  });
}

function patchOf({ metadata: { resourceVersion } }: PersistentVolumeClaim, status: object): object {
  return { metadata: { resourceVersion }, status };
}
