import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import { encodeRequirements } from "./resource-checkpoint.ts";

/** The beginning of each resize event's message (upstream's `events/resize.go`). */
const beginnings: Readonly<Record<string, string>> = {
  ResizeStarted: "Pod resize started",
  ResizeCompleted: "Pod resize completed",
  ResizeError: "Pod resize error",
  ResizeDeferred: "Pod resize Deferred",
  ResizeInfeasible: "Pod resize Infeasible",
};

/**
 * A resize event's message, as upstream's: the kind, then as JSON each container's desired resources, the generation,
 * and the obstacle. Pure.
 * @param reason of the event
 * @param pod with the resources that the event is about
 */
export function resizeMessage(reason: string, pod: Pod, generation: number | undefined, error?: string): string {
  const { containers, initContainers = [] } = pod.spec;
  const summary = {
    ...(initContainers.length > 0 && { initContainers: initContainers.map(allocationOf) }),
    ...(containers.length > 0 && { containers: containers.map(allocationOf) }),
    generation: generation ?? 0,
    ...(error && { error }),
  };
  return `${beginnings[reason] ?? reason}: ${JSON.stringify(summary)}`;
}

function allocationOf({ name, resources = {} }: Container): object {
  return { name, resources: encodeRequirements(resources) };
}
