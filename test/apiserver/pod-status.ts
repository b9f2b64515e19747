import { type ApiObject, at, type Fields, itemsAt, numberAt, textAt } from "./objects.ts";
import type { Problem } from "./resource.ts";

/** Whether a container with this status has ended for good. */
function isOver(status: Fields, policy: string): boolean {
  if (at(status, "state.terminated") === undefined) return false;
  return policy === "Never" || (policy === "OnFailure" && numberAt(status, "state.terminated.exitCode") === 0);
}

/** Forbidden changes of a pod's status (ValidatePodStatusUpdate): a container that has ended for good stays ended. */
export function statusProblems(pod: Fields, old: ApiObject): Problem[] {
  const problems: Problem[] = [];
  const podPolicy = textAt(old, "spec.restartPolicy");
  const check = (list: string, containers: string): void => {
    const statuses = itemsAt(pod, `status.${list}`);
    for (const before of itemsAt(old, `status.${list}`)) {
      const container = itemsAt(old, `spec.${containers}`).find(({ name }) => name === before["name"]);
      const own = textAt(container, "restartPolicy");
      // Sidecars restart whatever the pod's policy.
      if (own === "Always" || itemsAt(container, "restartPolicyRules").length > 0) continue;
      const policy = own || podPolicy;
      if (!isOver(before, policy)) continue;
      const index = statuses.findIndex(({ name }) => name === before["name"]);
      if (index === -1 || at(statuses[index], "state.terminated") !== undefined) continue;
      problems.push([`status.${list}[${index}].state`, "Forbidden: may not be transitioned to non-terminated state"]);
    }
  };
  if (podPolicy === "Always") return [];
  check("containerStatuses", "containers");
  check("initContainerStatuses", "initContainers");
  return problems;
}
