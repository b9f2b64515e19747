import type { Container } from "./container.ts";
import type { Pod } from "./pod.ts";

/**
 * Whether a container that ended with this exit code is to run again: the container's rules first, then its own policy,
 * then the pod's (KEP-5307).
 */
export function restartsAfter(pod: Pod, container: Container, exitCode: number): boolean {
  // Rules count only beside a policy of the container's own.
  if (container.restartPolicy !== undefined && hasMatchingRule(container, exitCode)) return true;
  switch (container.restartPolicy ?? pod.spec.restartPolicy ?? "Always") {
    case "Always":
      return true;
    case "OnFailure":
      return exitCode !== 0;
    case "Never":
      return false;
  }
}

function hasMatchingRule(container: Container, exitCode: number): boolean {
  const rule = (container.restartPolicyRules ?? []).find(({ exitCodes }) => {
    const listed = exitCodes?.values?.includes(exitCode) ?? false;
    return (
      exitCodes !== undefined && (exitCodes.operator === "NotIn" ? !listed : exitCodes.operator === "In" && listed)
    );
  });
  return rule?.action === "Restart" || rule?.action === "RestartAllContainers";
}
