import { ApiDecodeError } from "../api-client/api-error.ts";
import { metadataText, uidOf, versionOf } from "../api-client/collected.ts";
import { type ApiObject, isRecord, type Resource } from "../api-client/resource.ts";
import { type MergeKeys, strategicPatch } from "../api-client/strategic-patch.ts";
import type { PodStatus } from "../api/status.ts";
import type { PodUid } from "../base/ids.ts";
import { apiPods, readPodStatus } from "../sources/api-pod.ts";
import { mergedConditions } from "./merged-conditions.ts";

/** PodStatus lists that the server merges, with their keys. */
const mergeKeys: MergeKeys = {
  conditions: { key: "type", anyOrder: true },
  podIPs: { key: "ip" },
  hostIPs: { key: "ip" },
};

/** The kubelet's fields: those of others (resourceClaimStatuses, nominatedNodeName …) are left alone. */
const ownFields = [
  "observedGeneration",
  "phase",
  "conditions",
  "message",
  "reason",
  "hostIP",
  "hostIPs",
  "podIP",
  "podIPs",
  "startTime",
  "initContainerStatuses",
  "containerStatuses",
  "ephemeralContainerStatuses",
  "qosClass",
  "allocatedResources",
  "resources",
] as const satisfies readonly (keyof PodStatus)[];

/** The last comparison of each status: after a write the same two are compared again. */
const compared = new WeakMap<PodStatus, Compared>();

interface Compared {
  /** Per static pod status: those of its mirror pods in turn. */
  readonly uid: PodUid;
  readonly found: PodStatus | undefined;
  readonly patch: object | undefined;
}

/**
 * The patch that brings a status to the API server's pod; undefined when equal. Conditions of others are kept as on the
 * server. The UID restricts it to this pod. Pure.
 */
export function statusPatch(uid: PodUid, found: PodStatus | undefined, wanted: PodStatus): object | undefined {
  const last = compared.get(wanted);
  if (last?.uid === uid && last.found === found) return last.patch;
  const patch = makePatch(uid, found, wanted);
  compared.set(wanted, { uid, found, patch });
  return patch;
}

function makePatch(uid: PodUid, found: PodStatus | undefined, wanted: PodStatus): object | undefined {
  const conditions = mergedConditions(found, wanted);
  const status = strategicPatch(picked(found ?? {}), picked({ ...wanted, conditions }), mergeKeys);
  return status && { metadata: { uid }, status };
}

/**
 * Whether an accepted patch already contained everything in `left`: then the server drops it. What the patch omitted
 * because the server had it was changed by someone else meanwhile. Pure.
 */
export function isPartOf(left: unknown, patch: unknown): boolean {
  if (Array.isArray(left)) {
    return Array.isArray(patch) && left.every((item) => patch.some((other) => isPartOf(item, other)));
  }
  if (!isRecord(left)) return left === patch;
  return isRecord(patch) && Object.entries(left).every(([key, value]) => key in patch && isPartOf(value, patch[key]));
}

function picked(status: Partial<PodStatus>): Record<string, unknown> {
  return Object.fromEntries(ownFields.map((name) => [name, status[name]]));
}

/** 0 goes first: deletions, then what decides about traffic or completion, then the rest. */
export type WriteRank = 0 | 1 | 2;

/** The urgency of a status update. Pure. */
export function rankOf(found: PodStatus | undefined, wanted: PodStatus): WriteRank {
  const ready = (status: PodStatus | undefined): string | undefined =>
    status?.conditions?.find(({ type }) => type === "Ready")?.status;
  const becameReady = ready(found) !== ready(wanted) && (ready(found) === "True" || ready(wanted) === "True");
  return becameReady || (found?.phase !== wanted.phase && wanted.phase !== "Pending") ? 1 : 2;
}

/** The decoded part of the server's response: nothing else of the returned pod is read. */
export interface StatusEcho extends ApiObject {
  readonly status: PodStatus | undefined;
}

/** Pods as responses: a status was accepted, whether the rest of the pod can be decoded or not. */
export const statusEchoes: Resource<StatusEcho> = {
  ...apiPods,
  decode: (value) => {
    const [uid, name] = [uidOf(value), metadataText(value, "name")];
    if (uid === undefined || name === undefined) throw new ApiDecodeError("Pod: has no name or UID");
    return { metadata: { name, uid, resourceVersion: versionOf(value) }, status: readPodStatus(value) };
  },
};
