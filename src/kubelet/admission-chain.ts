import type { Pod } from "../api/pod.ts";
import { admitUnderPressure } from "../eviction/admission.ts";
import type { NodePressure } from "../eviction/pressure-monitor.ts";
import type { Cause } from "../journal/entry.ts";
import type { AdmissionChain } from "../pods/admission.ts";
import type { ClusterHooks } from "../pods/cluster-hooks.ts";
import type { Room } from "./room.ts";
import { admitByProfile, admitBySecurity, admitSupported, type NodeAdmission } from "../pods/node-admission.ts";

interface ChainParts {
  readonly admission: NodeAdmission;
  readonly cluster?: Pick<ClusterHooks, "runtime" | "unsupported"> | undefined;
  /** Undefined: the machine is not observed. */
  readonly pressure?: Pick<NodePressure, "pressures"> | undefined;
  readonly rooms: readonly Room[];
  readonly allocations: { wanted(pod: Pod, cause: Cause): void };
}

/** Every room's say in which pods the node takes, in upstream's order. A new room adds a line. */
export function admissionChain({ admission, cluster, pressure, rooms, allocations }: ChainParts): AdmissionChain {
  const security = (): NodeAdmission => {
    const supplementalGroupsPolicy = cluster?.runtime()?.supplementalGroupsPolicy ?? admission.supplementalGroupsPolicy;
    return { ...admission, supplementalGroupsPolicy };
  };
  return {
    before: [
      (pod) => admitUnderPressure(pod, pressure?.pressures ?? []),
      (pod, { node }) => admitBySecurity(pod, security(), node.place?.labels),
    ],
    after: [
      (pod) => admitByProfile(pod, security()),
      (pod) => admitSupported(cluster?.unsupported(pod) ?? ""),
      ...rooms.flatMap(({ admit = [] }) => admit),
    ],
    reserve: (pod, cause) => {
      allocations.wanted(pod, cause);
      for (const room of rooms) room.reserve?.(pod, cause);
    },
  };
}
