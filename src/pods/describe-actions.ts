import type { Cause } from "../journal/entry.ts";
import type { PodActions } from "../runtime/actions/pod-actions.ts";
import { describeResize, type PodResize } from "../runtime/actions/resize-actions.ts";
import { shortId } from "../runtime/actions/sandbox-actions.ts";
import type { ContainerWait } from "../runtime/actions/container-decision.ts";

/** One action of a decision, in words, and its cause. */
export interface DescribedAction {
  /** `start container web, attempt 0`. */
  readonly text: string;
  readonly cause: Cause;
}

/** The actions of a decision, in execution order. Pure. */
export function describeActions(actions: PodActions): DescribedAction[] {
  const { killPod, restartAll, containersToKill, createSandbox, containersToStart, resize } = actions;
  return [
    ...(killPod === undefined ? [] : [{ text: "stop the pod", cause: killPod }]),
    ...(restartAll === undefined ? [] : [{ text: "restart all containers", cause: restartAll.cause }]),
    ...containersToKill.map(({ container, cause }) => {
      return { text: `stop container ${container.name} (${shortId(container.id)})`, cause };
    }),
    ...(createSandbox === undefined
      ? []
      : [{ text: `create sandbox, attempt ${createSandbox.attempt}`, cause: createSandbox.cause }]),
    ...containersToStart.map(({ container, attempt, cause }) => {
      return { text: `start container ${container.name}, attempt ${attempt}`, cause };
    }),
    ...(resize === undefined ? [] : describePodResize(resize)),
  ];
}

function describePodResize({ updates, restarts, cause }: PodResize): DescribedAction[] {
  const inPlace = updates.map((update) => `resize container ${update.container.name}: ${describeResize(update)}`);
  const again = restarts.map(({ start: { container, attempt } }) => {
    return `restart container ${container.name} to resize it, attempt ${attempt}`;
  });
  const texts = [...inPlace, ...again];
  return (texts.length > 0 ? texts : ["set limits of the pod's cgroup"]).map((text) => ({ text, cause }));
}

/** Whether a container waits for the restart of all of its pod's containers. Pure. */
export function isPodRestart({ code }: Cause): boolean {
  return code === "RestartAllContainers";
}

/** What a container that waits is waiting for. Pure. */
export function awaited({ exited }: ContainerWait): "retry" | "next restart" {
  return exited === undefined ? "retry" : "next restart";
}
