import { containersOf } from "./all-containers.ts";
import type { Container } from "./container.ts";
import type { Pod } from "./pod.ts";

/** What to do after an exit: nothing more, run the container again, or start the whole pod over. */
export type AfterExit = "stay" | "restart" | "restartAllContainers";

/** Waiting and last termination reason of a container that was stopped because its pod restarts (KEP-5532). */
export const restartingAllContainers = "RestartingAllContainers";

/**
 * What follows when a container has ended with this exit code: the container's rules first, then its own policy, then
 * the pod's (KEP-5307, KEP-5532).
 */
export function afterExit(pod: Pod, container: Container, exitCode: number): AfterExit {
  // Rules count only beside a policy of the container's own.
  const rule = container.restartPolicy === undefined ? undefined : matchingRule(container, exitCode);
  if (rule?.action === "RestartAllContainers") return "restartAllContainers";
  if (rule?.action === "Restart") return "restart";
  switch (container.restartPolicy ?? pod.spec.restartPolicy ?? "Always") {
    case "Always":
      return "restart";
    case "OnFailure":
      return exitCode === 0 ? "stay" : "restart";
    case "Never":
      return "stay";
  }
}

/** Whether a container that ended with this exit code is to run again. */
export function restartsAfter(pod: Pod, container: Container, exitCode: number): boolean {
  return afterExit(pod, container, exitCode) !== "stay";
}

/** Whether a container that was stopped from outside (its probe failed, its sandbox is gone) is to run again. */
export function restartsWhenKilled(pod: Pod, container: Container): boolean {
  return (container.restartPolicy ?? pod.spec.restartPolicy ?? "Always") !== "Never";
}

/** True when neither the pod's policy nor a policy or rule of any container's own lets anything run a second time. */
export function neverRestarts(pod: Pod): boolean {
  return containersOf(pod.spec).every((container) => {
    return !restartsWhenKilled(pod, container) && (container.restartPolicyRules ?? []).length === 0;
  });
}

/** The first rule that matches decides. */
function matchingRule(container: Container, exitCode: number): { readonly action: string } | undefined {
  return container.restartPolicyRules?.find(({ exitCodes }) => {
    const listed = exitCodes?.values?.includes(exitCode) ?? false;
    return (
      exitCodes !== undefined && (exitCodes.operator === "NotIn" ? !listed : exitCodes.operator === "In" && listed)
    );
  });
}
