import { isSidecar } from "../api/all-containers.ts";
import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import { isNodeCriticalPod } from "../api/pod-kind.ts";
import { containerRequests, isSupportedPodResource, parseList } from "./pod-totals.ts";
import { qosClass } from "./qos.ts";

const guaranteedScore = -997n;
const bestEffortScore = 1000n;

/**
 * `oom_score_adj` of a container's processes. The kernel adds it to a process's share of the memory in thousandths, so
 * a burstable container below its request is killed after those that exceed theirs.
 * @param memoryCapacity the machine's memory in bytes
 */
export function oomScoreAdjust(pod: Pod, container: Container, memoryCapacity: bigint): bigint {
  if (isNodeCriticalPod(pod)) return guaranteedScore;
  const qos = qosClass(pod);
  if (qos === "Guaranteed") return guaranteedScore;
  if (qos === "BestEffort") return bestEffortScore;
  const share = unclaimedRequest(pod);
  let request = memoryRequest(container);
  // A sidecar must not die before the containers that need it.
  if (isInitSidecar(pod, container)) request = max(request, leastRegularRequest(pod));
  const score = 1000n - (1000n * (request + share)) / memoryCapacity;
  return max(1000n + guaranteedScore, score < bestEffortScore ? score : bestEffortScore - 1n);
}

function memoryRequest(container: Container): bigint {
  return parseList(container.resources?.requests).get("memory")?.value() ?? 0n;
}

function leastRegularRequest(pod: Pod): bigint {
  const requests = pod.spec.containers.map(memoryRequest);
  return requests.reduce((least, request) => (request < least ? request : least), requests[0] ?? 0n);
}

function isInitSidecar(pod: Pod, container: Container): boolean {
  return isSidecar(container) && (pod.spec.initContainers ?? []).some(({ name }) => name === container.name);
}

/** Each container's share of the pod-level memory request beyond the containers' requests (KEP-2837). */
function unclaimedRequest(pod: Pod): bigint {
  const requests = parseList(pod.spec.resources?.requests);
  if (![...requests.keys()].some(isSupportedPodResource)) return 0n;
  const whole = requests.get("memory")?.value() ?? 0n;
  if (whole === 0n) return 0n;
  const claimed = containerRequests(pod).get("memory")?.value() ?? 0n;
  return (whole - claimed) / BigInt(pod.spec.containers.length + (pod.spec.initContainers?.length ?? 0));
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
