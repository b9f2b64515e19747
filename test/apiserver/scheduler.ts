import { ApiError } from "./api-error.ts";
import { resourceNamed } from "./catalog.ts";
import { recordEvent } from "./event-recorder.ts";
import { later } from "./later.ts";
import { type ApiObject, fieldsAt, type Fields, itemsAt, sameJson, textAt } from "./objects.ts";
import { bindPod, withCondition } from "./pod-requests.ts";
import type { Registry } from "./registry.ts";
import type { StoreEvent } from "./store.ts";

function tolerates(pod: ApiObject, taint: Fields): boolean {
  return itemsAt(pod, "spec.tolerations").some(({ key, operator, value, effect }) => {
    if (effect !== undefined && effect !== "" && effect !== taint["effect"]) return false;
    if (key !== undefined && key !== "" && key !== taint["key"]) return false;
    return operator === "Exists" || (value ?? "") === (taint["value"] ?? "");
  });
}

function fits(pod: ApiObject, node: ApiObject, podsThere: number): boolean {
  if (fieldsAt(node, "spec")["unschedulable"] === true) return false;
  const isReady = itemsAt(node, "status.conditions").some(({ type, status }) => type === "Ready" && status === "True");
  const room = Number(textAt(node, "status.allocatable.pods") || 110);
  if (!isReady || podsThere >= room) return false;
  const labels = fieldsAt(node, "metadata.labels");
  if (!Object.entries(fieldsAt(pod, "spec.nodeSelector")).every(([key, value]) => labels[key] === value)) return false;
  const blocking = itemsAt(node, "spec.taints").filter(({ effect }) => effect !== "PreferNoSchedule");
  return blocking.every((taint) => tolerates(pod, taint));
}

/**
 * A minimal scheduler: selects the ready node with the fewest pods, by node selector, taints and the number of pods.
 * Ignores resources, affinity and preemption.
 */
export function schedulePods(registry: Registry): void {
  const scheduler = new Scheduler(registry);
  registry.store.subscribe((event) => scheduler.look(event));
}

class Scheduler {
  readonly #registry: Registry;
  #isDue = false;

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  look({ resource }: StoreEvent): void {
    if ((resource !== "pods" && resource !== "nodes") || this.#isDue) return;
    this.#isDue = true;
    later(() => {
      this.#isDue = false;
      this.#scheduleAll();
    });
  }

  #scheduleAll(): void {
    const { store } = this.#registry;
    const pods = store.all("pods");
    const waiting = pods.filter(
      (pod) =>
        textAt(pod, "spec.nodeName") === "" &&
        textAt(pod, "spec.schedulerName") === "default-scheduler" &&
        itemsAt(pod, "spec.schedulingGates").length === 0 &&
        pod.metadata.deletionTimestamp === undefined,
    );
    if (waiting.length === 0) return;
    const counts = new Map<string, number>();
    for (const pod of pods) {
      const node = textAt(pod, "spec.nodeName");
      counts.set(node, (counts.get(node) ?? 0) + 1);
    }
    for (const pod of waiting) {
      const count = (node: ApiObject): number => counts.get(node.metadata.name) ?? 0;
      const [best] = store
        .all("nodes")
        .filter((node) => fits(pod, node, count(node)))
        .toSorted((a, b) => count(a) - count(b));
      if (best === undefined) this.#postpone(pod);
      else if (this.#bind(pod, best.metadata.name)) counts.set(best.metadata.name, count(best) + 1);
    }
  }

  #bind(pod: ApiObject, node: string): boolean {
    const { name, namespace = "" } = pod.metadata;
    try {
      bindPod(this.#registry, { resource: resourceNamed("pods"), namespace, name }, node);
    } catch (error) {
      if (error instanceof ApiError) return false;
      throw error;
    }
    const message = `Successfully assigned ${namespace}/${name} to ${node}`;
    recordEvent(this.#registry, pod, { reason: "Scheduled", type: "Normal", message, component: "default-scheduler" });
    return true;
  }

  #postpone(pod: ApiObject): void {
    const message = `0/${this.#registry.store.all("nodes").length} nodes are available.`;
    const unscheduled = withCondition(pod, "PodScheduled", "False", { reason: "Unschedulable", message });
    // Each change of a pod or node triggers a retry, including the one that this write would be.
    if (sameJson(unscheduled, pod)) return;
    this.#registry.store.put("pods", `${pod.metadata.namespace ?? ""}/${pod.metadata.name}`, unscheduled);
    recordEvent(this.#registry, pod, {
      reason: "FailedScheduling",
      type: "Warning",
      message,
      component: "default-scheduler",
    });
  }
}
