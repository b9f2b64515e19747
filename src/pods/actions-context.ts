import type { ContainerId } from "../base/ids.ts";
import type { PodProbes } from "../prober/probe-manager.ts";
import type { RestartTimes } from "./restart-times.ts";
import type { StartFailures } from "./start-failures.ts";
import type { PodActionsContext, ResizeFacts } from "../runtime/actions/pod-actions-context.ts";

/** What a worker knows of its pod beside the spec and the runtime's state. */
export interface WorkerKnowledge {
  readonly busy: ReadonlySet<string>;
  readonly restarts: RestartTimes;
  readonly failures: StartFailures;
  readonly probes: Pick<PodProbes, "unhealthy" | "hasStarted">;
  /** The journal entry of a container's or sandbox's last observed change, by its ID. */
  readonly evidence: ReadonlyMap<string, number>;
  readonly resize: ResizeFacts;
}

/** The facts for a decision at `nowMs` (monotonic). Read-only. */
export function actionsContext(knowledge: WorkerKnowledge, nowMs: number): PodActionsContext {
  const { busy, restarts, failures, probes, evidence, resize } = knowledge;
  return {
    nowMs,
    busy,
    backOffEndsAt: (container, exited) => restarts.endsAt(container, exited),
    retryAt: (container) => failures.retryAt(container),
    sandboxRetryAt: failures.sandboxRetryAt,
    // A sandbox that keeps dying backs off like a container that does.
    sandboxBackOffEndsAt: restarts.sandboxEndsAt(),
    evidence: (container: { readonly id: ContainerId }) => evidence.get(container.id),
    restartCause: (exited) => restarts.restartCause(exited),
    startsOver: (exited) => restarts.startsOver(exited),
    unhealthy: (container, running) => probes.unhealthy(container, running),
    started: (container, running) => probes.hasStarted(container, running),
    resize,
  };
}
