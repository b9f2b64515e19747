import type { Pod } from "../../api/pod.ts";
import type { Cause } from "../../journal/entry.ts";
import type { PodStatus, SandboxStatus } from "../status/pod-status.ts";

/** Why a new sandbox is needed, and its attempt. */
export interface NewSandbox {
  readonly recreate: Cause;
  readonly attempt: number;
}

/** The sandbox for the pod's containers, or why a new one is needed. */
export type SandboxDecision = NewSandbox | { readonly recreate: undefined; readonly current: SandboxStatus };

/**
 * A sandbox is recreated when there is none, more than one ready, the newest is not ready, the network mode changed, or
 * it has no address.
 */
export function decideSandbox(pod: Pod, status: PodStatus): SandboxDecision {
  const newest = status.sandboxes[0];
  if (newest === undefined) {
    return { recreate: { code: "SandboxMissing", message: "the pod has no sandbox" }, attempt: 0 };
  }
  const attempt = newest.attempt + 1;
  const wantsHostNetwork = pod.spec.hostNetwork === true;
  if (status.sandboxes.filter((sandbox) => sandbox.ready).length > 1) {
    return { recreate: { code: "SandboxSurplus", message: "the pod has more than one ready sandbox" }, attempt };
  }
  if (!newest.ready) {
    return { recreate: { code: "SandboxNotReady", message: `sandbox ${shortId(newest.id)} is not ready` }, attempt };
  }
  if (newest.hostNetwork !== wantsHostNetwork) {
    const wanted = wantsHostNetwork ? "the host network" : "its own network namespace";
    return { recreate: { code: "SandboxNetworkChanged", message: `the pod now uses ${wanted}` }, attempt };
  }
  if (!wantsHostNetwork && newest.ips.length === 0) {
    const message = `sandbox ${shortId(newest.id)} has no IP address`;
    return { recreate: { code: "SandboxWithoutAddress", message }, attempt };
  }
  return { recreate: undefined, current: newest };
}

/** The first 12 characters, like IDs in `crictl` and `docker`. */
export function shortId(id: string): string {
  return id.slice(0, 12);
}
