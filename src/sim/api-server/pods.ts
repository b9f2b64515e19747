import { type Fields, fieldsAt, listAt, Refusal, type Value } from "./values.ts";

/** DELETE's body (metav1.DeleteOptions). */
export interface DeleteOptions {
  readonly gracePeriodSeconds?: number;
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
}

/** A new pod: bound, and otherwise without history. */
export function createdPod(value: Value): Value {
  const isMirror = value.metadata.annotations?.["kubernetes.io/config.mirror"] !== undefined;
  const scheduled = {
    type: "PodScheduled",
    status: "True",
    lastProbeTime: null,
    lastTransitionTime: value.metadata.creationTimestamp,
  };
  const status = { phase: "Pending", qosClass: "BestEffort", ...(!isMirror && { conditions: [scheduled] }) };
  return { ...value, metadata: { ...value.metadata, generation: 1 }, status };
}

/**
 * The effect of a delete request on a pod: "remove", "nothing" (it is being deleted already, as soon), or the pod with
 * its deletion time. A pod on a node is removed when its kubelet deletes it with grace period 0.
 */
export function deletion(pod: Value, options: DeleteOptions, nowMs: number): Value | "remove" | "nothing" {
  const { metadata } = pod;
  const phase = fieldsAt(pod, "status")["phase"];
  const own = fieldsAt(pod, "spec")["terminationGracePeriodSeconds"];
  const isOver = phase === "Succeeded" || phase === "Failed";
  const asked = options.gracePeriodSeconds ?? (typeof own === "number" ? own : 30);
  const grace = isOver ? 0 : Math.max(0, asked);
  if (grace === 0) return "remove";
  const before = metadata.deletionGracePeriodSeconds;
  if (before !== undefined && grace >= before) return "nothing";
  return marked(pod, grace, nowMs);
}

/** The pod with a deletion time after this grace period. */
export function marked(pod: Value, grace: number, nowMs: number): Value {
  const { metadata } = pod;
  const before = metadata.deletionGracePeriodSeconds;
  const sinceMs =
    metadata.deletionTimestamp === undefined ? nowMs : Date.parse(metadata.deletionTimestamp) - (before ?? 0) * 1000;
  const deletionTimestamp = rfc3339(sinceMs + grace * 1000);
  const generation = (metadata.generation ?? 1) + 1;
  return { ...pod, metadata: { ...metadata, generation, deletionTimestamp, deletionGracePeriodSeconds: grace } };
}

/**
 * Checks a status transition: a container that has terminated for good does not return (upstream's
 * ValidateContainerStateTransition). @throws Refusal (422)
 */
export function checkStatus(pod: Value, after: Fields): void {
  const spec = fieldsAt(pod, "spec");
  const containers = listAt(spec, "containers");
  if (containers.some((container) => listAt(container, "restartPolicyRules").some(restartsAll))) return;
  const exitCodes = exitCodesOf(after);
  for (const [name, exitCode] of exitCodesOf(fieldsAt(pod, "status"))) {
    if (exitCode === undefined || !exitCodes.has(name) || exitCodes.get(name) !== undefined) continue;
    const container = containers.find((each) => each["name"] === name) ?? {};
    if (mayRestart(container, spec["restartPolicy"], exitCode)) continue;
    throw new Refusal(
      422,
      "Invalid",
      `status.containerStatuses: ${name} may not be transitioned to non-terminated state`,
    );
  }
}

function mayRestart(container: Fields, podPolicy: unknown, exitCode: number): boolean {
  const rules = listAt(container, "restartPolicyRules");
  const isNamed = rules.some((rule) => {
    const { operator, values } = fieldsAt(rule, "exitCodes");
    return Array.isArray(values) && values.includes(exitCode) === (operator === "In");
  });
  if (isNamed) return true;
  const policy = container["restartPolicy"] ?? podPolicy;
  return policy === "Always" || (policy === "OnFailure" && exitCode !== 0);
}

function restartsAll(rule: Fields): boolean {
  return rule["action"] === "RestartAllContainers";
}

/** By container; undefined for one that has not terminated. */
function exitCodesOf(status: Fields): Map<string, number | undefined> {
  return new Map(
    listAt(status, "containerStatuses").map((container) => {
      const { exitCode } = fieldsAt(fieldsAt(container, "state"), "terminated");
      return [String(container["name"]), typeof exitCode === "number" ? exitCode : undefined];
    }),
  );
}

/** metav1.Time. */
export function rfc3339(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/u, "Z");
}
