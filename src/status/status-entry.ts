import { isNewer } from "../api-client/resource-version.ts";
import type { ApiObject } from "../api-client/resource.ts";
import type { PodStatus } from "../api/status.ts";
import type { Cause } from "../journal/entry.ts";
import type { ApiPod } from "../sources/api-pod.ts";
import { statusPatch } from "./status-write.ts";

/** A pod of the server's, and how far it has been told. */
export interface StatusEntry {
  pod: ApiPod;
  /** As the server had it last. */
  found: PodStatus | undefined;
  foundVersion: string | undefined;
  /** Version of the status that the server was told last; undefined: none, or it has to be told again. */
  told: number | undefined;
  /** Why the latest status is what it is. */
  cause: Cause;
  /** It has stopped and holds nothing any more: then the server may forget it. */
  released: boolean;
  /** The server was told to remove it, and has shown no newer version of it since. */
  deleted: boolean;
  busy: boolean;
  /** Nobody knows whether the last write was done: what the server has is asked for before the next. */
  unsure: boolean;
  failures: number;
  /** How often in a row the server did not take what it was told. */
  refusals: number;
  /** The server said that it has no such pod: monotonic ms at which it may be asked again, when something is heard of it. */
  missingUntilMs: number | undefined;
  /** Monotonic ms before which nothing is sent. */
  notBeforeMs: number;
  /** Monotonic ms at which what is not urgent of the latest status is sent: what follows at once goes with it. */
  detailsAtMs: number;
  /** Monotonic ms at which what somebody else wrote into our part is put right. */
  reconcileAtMs: number | undefined;
  /** What the server did not take of the last patch: it need not be sent again and again. */
  refused: string | undefined;
}

const unknown: Cause = { code: "StatusChanged", message: "the pod's status has changed" };

export function newEntry(pod: ApiPod): StatusEntry {
  return {
    pod,
    found: pod.status,
    foundVersion: pod.metadata.resourceVersion,
    told: undefined,
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

/** How often it was told in vain since it was told last. */
export function failuresOf({ failures, refusals }: StatusEntry): number {
  return failures + refusals;
}

/** The server's answer, unless something newer is known of it: false then. */
export function has(
  entry: StatusEntry,
  { metadata, status }: Pick<ApiObject, "metadata"> & Pick<ApiPod, "status">,
): boolean {
  if (!isNewer(metadata.resourceVersion, entry.foundVersion)) return false;
  entry.found = status;
  entry.foundVersion = metadata.resourceVersion;
  return true;
}

/** What the server has yet to take of a status, to be compared; undefined: nothing. */
export function difference({ pod, found }: StatusEntry, status: PodStatus): string | undefined {
  const patch = statusPatch(pod.metadata.uid, found, status);
  return patch && JSON.stringify(patch);
}
