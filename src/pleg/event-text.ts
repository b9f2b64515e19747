import { exitText } from "../runtime/actions/container-actions.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";
import { shortId } from "../runtime/actions/sandbox-actions.ts";
import type { PodLifecycleEvent } from "./events.ts";

/** An event as one clause for the journal. */
export function describeEvent(event: PodLifecycleEvent, status: PodStatus): string {
  const container = status.containers.find((candidate) => candidate.id === event.id);
  const what = event.container === "" ? `sandbox ${shortId(event.id)}` : `container ${event.container}`;
  switch (event.type) {
    case "ContainerStarted":
      return `${what} is running`;
    case "ContainerDied":
      return container === undefined || event.container === "" ? `${what} is no longer running` : exitText(container);
    case "ContainerRemoved":
      return `${what} is gone from the runtime`;
    case "ContainerChanged":
      return `${what} is ${container?.state ?? "changed"}`;
    case "PodSync":
      return "the pod was inspected";
  }
}

/** Further data of an event's journal entry: the container, and its exit. */
export function eventData(
  event: PodLifecycleEvent,
  status: PodStatus,
): { data: { id: string; exitCode?: number; reason?: string; ranMs?: number } } {
  const container = status.containers.find((candidate) => candidate.id === event.id);
  if (event.type !== "ContainerDied" || container === undefined) return { data: { id: event.id } };
  const { exitCode, reason, startedAt, finishedAt } = container;
  const ran = startedAt > 0n && finishedAt >= startedAt ? { ranMs: Number((finishedAt - startedAt) / 1_000_000n) } : {};
  return { data: { id: event.id, exitCode, reason, ...ran } };
}
