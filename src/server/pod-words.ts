import { printable } from "../journal/text.ts";
import type { ContainerView, PodView } from "./local-api.ts";

/**
 * One word for a pod's state, by the rules of `kubectl get pods`: a container's waiting reason takes precedence over
 * the phase. Unlike there, the reason of a pod that has ended takes precedence over those of its containers:
 * `Completed` of a container that ended well when it was stopped would hide the eviction.
 */
export function podStatusWord(pod: PodView): string {
  if (pod.state === "terminating") return "Terminating";
  const initializing = initWord(pod);
  if (initializing !== undefined && !hasEnded(pod)) return printable(initializing);
  if (hasEnded(pod) && pod.reason !== "") return printable(pod.reason);
  let word: string = pod.reason === "" ? pod.phase : pod.reason;
  let running = false;
  for (const container of pod.containers.toReversed()) {
    if (container.state === "running") running = true;
    else if (neverStarts(pod, container)) continue;
    else if (container.reason !== "") word = container.reason;
    else if (container.state === "terminated") word = `ExitCode:${container.exitCode ?? "?"}`;
  }
  if (word === "Completed" && running) return pod.ready ? "Running" : "NotReady";
  return printable(word);
}

/** `Init:1/3`, `Init:CrashLoopBackOff` …; undefined once every init container is done. */
function initWord({ initContainers }: PodView): string | undefined {
  const index = initContainers.findIndex((container) => !container.done);
  const container = initContainers[index];
  if (container === undefined) return undefined;
  if (container.state === "terminated") return `Init:${container.reason || `ExitCode:${container.exitCode ?? "?"}`}`;
  const waits = container.state === "waiting" && container.reason !== "" && container.reason !== "PodInitializing";
  return waits ? `Init:${container.reason}` : `Init:${index}/${initContainers.length}`;
}

/** Containers that count for readiness: regular ones and sidecars. */
export function lastingContainers(pod: PodView): readonly ContainerView[] {
  return [...pod.containers, ...pod.initContainers.filter((container) => container.sidecar)];
}

/** True when the pod has ended by itself and will not run again. */
export function hasEnded(pod: PodView): boolean {
  return pod.phase === "Succeeded" || pod.phase === "Failed";
}

/** In a rejected pod, a container's waiting reason is meaningless. */
export function neverStarts(pod: PodView, container: ContainerView): boolean {
  return hasEnded(pod) && container.state === "waiting";
}

/** A pod's condition. starting: not ready, without a problem so far. */
export type PodMood = "failed" | "ended" | "stopping" | "good" | "trouble" | "starting";

export function podMood(pod: PodView): PodMood {
  if (pod.phase === "Failed") return "failed";
  if (pod.phase === "Succeeded") return "ended";
  if (pod.state !== "syncing") return "stopping";
  if (pod.ready) return "good";
  const unfinished = pod.initContainers.filter(({ done }) => !done);
  return [...unfinished, ...pod.containers].some(isInTrouble) ? "trouble" : "starting";
}

function isInTrouble(container: ContainerView): boolean {
  return container.state === "terminated" || /BackOff|Err|Error/.test(container.reason);
}

/** The origin of a pod that `run` did not start, after its name. @param source `file`, `http`, `api` */
export function originOf(source: string): string {
  return source === "api" ? "comes from the API server" : `comes from a ${source} manifest`;
}
