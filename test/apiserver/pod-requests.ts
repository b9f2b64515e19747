import { ApiError, conflict, notFound } from "./api-error.ts";
import { findResource } from "./catalog.ts";
import type { Caller, Registry, Target } from "./registry.ts";
import {
  type ApiObject,
  draftAt,
  draftOf,
  type Fields,
  fieldsAt,
  itemsAt,
  numberAt,
  textAt,
  timestamp,
} from "./objects.ts";
import { matchesLabelSelector } from "./selectors.ts";

const success: Fields = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 };

/** Sets a condition of a status; its transition time moves only when its status changes. */
export function withCondition(object: ApiObject, type: string, status: string, rest: Fields = {}): Fields {
  const conditions = itemsAt(object, "status.conditions");
  const old = conditions.find((each) => each["type"] === type);
  const since = old?.["status"] === status ? old["lastTransitionTime"] : timestamp();
  const others = conditions.filter((each) => each["type"] !== type);
  const condition = { type, status, lastProbeTime: null, lastTransitionTime: since, ...rest };
  return { ...object, status: { ...fieldsAt(object, "status"), conditions: [...others, condition] } };
}

/** Binds a pod to a node. @throws ApiError 404, 409 if it is bound or terminating */
export function bindPod(registry: Registry, target: Target, node: string): Fields {
  const pod = registry.get(target);
  const bindings = { group: "", resource: "pods/binding", name: target.name };
  const bound = textAt(pod, "spec.nodeName");
  if (bound !== "") throw conflict(bindings, `pod ${target.name} is already assigned to node ${JSON.stringify(bound)}`);
  if (pod.metadata.deletionTimestamp !== undefined) {
    throw conflict(bindings, `pod ${target.name} is being deleted, cannot be assigned to a host`);
  }
  const draft = draftOf(withCondition(pod, "PodScheduled", "True"));
  draftAt(draft, "spec")["nodeName"] = node;
  registry.store.put("pods", `${target.namespace}/${target.name}`, draft);
  return success;
}

/**
 * Deletes a pod, unless it runs and a disruption budget forbids that. @throws ApiError 429 if forbidden, 500 for two
 * budgets
 */
export function evictPod(registry: Registry, target: Target, eviction: Fields, caller: Caller): Fields {
  const pod = registry.find(target);
  if (pod === undefined) throw notFound({ group: "", resource: "pods", name: target.name });
  const budgets = registry.store
    .all("poddisruptionbudgets.policy")
    .filter(
      (each) =>
        each.metadata.namespace === target.namespace && matchesLabelSelector(fieldsAt(each, "spec.selector"), pod),
    );
  const mayGo =
    pod.metadata.deletionTimestamp !== undefined ||
    ["Pending", "Succeeded", "Failed"].includes(textAt(pod, "status.phase"));
  if (!mayGo && budgets.length > 1) {
    const why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    throw new ApiError(500, "", why);
  }
  for (const budget of mayGo ? [] : budgets) {
    const allowed = numberAt(budget, "status.disruptionsAllowed") ?? 0;
    if (allowed > 0) {
      const resource = findResource("policy", "v1", "poddisruptionbudgets");
      if (resource === undefined) continue;
      const key = { resource, namespace: target.namespace, name: budget.metadata.name, subresource: "status" };
      registry.update(
        key,
        { ...budget, status: { ...fieldsAt(budget, "status"), disruptionsAllowed: allowed - 1 } },
        caller,
      );
      continue;
    }
    const { name } = budget.metadata;
    throw new ApiError(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.", {
      causes: [{ reason: "DisruptionBudget", message: `The disruption budget ${name} allows no disruption` }],
    });
  }
  const condition = { reason: "EvictionByEvictionAPI", message: "Eviction API: evicting" };
  if (caller.dryRun !== true && textAt(pod, "spec.nodeName") !== "") {
    registry.store.put(
      "pods",
      `${target.namespace}/${target.name}`,
      withCondition(pod, "DisruptionTarget", "True", condition),
    );
  }
  const grace = numberAt(eviction, "deleteOptions.gracePeriodSeconds");
  registry.delete({ ...target, subresource: "" }, grace === undefined ? {} : { gracePeriodSeconds: grace }, caller);
  return success;
}
