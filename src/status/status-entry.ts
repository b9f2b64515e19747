import { isNewer } from "../api-client/resource-version.ts";
import type { ApiObject } from "../api-client/resource.ts";
import type { PodStatus } from "../api/status.ts";
import type { Cause } from "../journal/entry.ts";
import type { ApiPod } from "../sources/api-pod.ts";
import { statusPatch } from "./status-write.ts";

/** A pod of the server, and how far its status is synced. */
export interface StatusEntry {
  pod: ApiPod;
  /** The server's last version. */
  found: PodStatus | undefined;
  foundVersion: string | undefined;
  /** Version of the status last sent; undefined: none, or it must be resent. */
  sentVersion: number | undefined;
  /** The cause of the latest status. */
  cause: Cause;
  /** It has stopped and released its resources: the server may delete it. */
  released: boolean;
  /** Its deletion was requested, and the server has shown no newer version since. */
  deleted: boolean;
  busy: boolean;
  /** The last write's outcome is unknown: the server's version is read before the next. */
  unsure: boolean;
  failures: number;
  /** Consecutive rejections by the server. */
  refusals: number;
  /** The server reported the pod as not found: monotonic ms at which it may be queried again. */
  missingUntilMs: number | undefined;
  /** Monotonic ms before which nothing is sent. */
  notBeforeMs: number;
  /** Monotonic ms at which a non-urgent status is sent: changes that follow soon are included. */
  detailsAtMs: number;
  /** Monotonic ms at which foreign changes of our part are corrected. */
  reconcileAtMs: number | undefined;
  /** What the server dropped from the last patch: not resent again and again. */
  refused: string | undefined;
}

const unknown: Cause = { code: "StatusChanged", message: "the pod's status has changed" };

export function newEntry(pod: ApiPod): StatusEntry {
  return {
    pod,
    found: pod.status,
    foundVersion: pod.metadata.resourceVersion,
    sentVersion: undefined,
    cause: unknown,
    released: false,
    deleted: false,
    busy: false,
    unsure: false,
    failures: 0,
    refusals: 0,
    missingUntilMs: undefined,
    notBeforeMs: 0,
    detailsAtMs: 0,
    reconcileAtMs: undefined,
    refused: undefined,
  };
}

/** Failed writes since the last success. */
export function failuresOf({ failures, refusals }: StatusEntry): number {
  return failures + refusals;
}

/** Takes the server's response, unless something newer is known: false then. */
export function has(
  entry: StatusEntry,
  { metadata, status }: Pick<ApiObject, "metadata"> & Pick<ApiPod, "status">,
): boolean {
  if (!isNewer(metadata.resourceVersion, entry.foundVersion)) return false;
  entry.found = status;
  entry.foundVersion = metadata.resourceVersion;
  return true;
}

/** The outstanding part of a status, for comparison; undefined: none. */
export function difference({ pod, found }: StatusEntry, status: PodStatus): string | undefined {
  const patch = statusPatch(pod.metadata.uid, found, status);
  return patch && JSON.stringify(patch);
}
