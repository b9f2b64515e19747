import { later } from "./later.ts";
import { type ApiObject, at, type Fields, fieldsAt, itemsAt, sameJson, textAt, timestamp } from "./objects.ts";
import type { Store, StoreEvent } from "./store.ts";

/** Taints by condition and status. */
const taintsByCondition: readonly (readonly [type: string, status: string, taint: string])[] = [
  ["Ready", "False", "not-ready"],
  ["Ready", "Unknown", "unreachable"],
  ["MemoryPressure", "True", "memory-pressure"],
  ["DiskPressure", "True", "disk-pressure"],
  ["PIDPressure", "True", "pid-pressure"],
  ["NetworkUnavailable", "True", "network-unavailable"],
];
const prefix = "node.kubernetes.io/";
const managed = new Set([...taintsByCondition.map(([, , taint]) => prefix + taint), `${prefix}unschedulable`]);

/** A node's desired taints: those for its state, and its others. */
function taintsOf(node: ApiObject): readonly Fields[] {
  const old = itemsAt(node, "spec.taints");
  const status = (type: string): string =>
    textAt(
      itemsAt(node, "status.conditions").find((each) => each["type"] === type),
      "status",
    );
  const wanted = taintsByCondition.filter(([type, when]) => status(type) === when).map(([, , taint]) => prefix + taint);
  if (at(node, "spec.unschedulable") === true) wanted.push(`${prefix}unschedulable`);
  const isManaged = ({ key, effect }: Fields): boolean =>
    effect === "NoSchedule" && managed.has(textAt({ key }, "key"));
  const kept = old.filter((taint) => !isManaged(taint) || wanted.includes(textAt(taint, "key")));
  const missing = wanted.filter((key) => !kept.some((taint) => isManaged(taint) && taint["key"] === key));
  return [...kept, ...missing.map((key) => ({ key, effect: "NoSchedule", timeAdded: timestamp() }))];
}

/** A minimal node lifecycle controller: taints by condition, and silent nodes. It evicts nothing. */
class NodeLifecycle {
  readonly #store: Store;
  readonly #silenceMs: number;
  /** Time of the last heartbeat by node name. */
  readonly #heardMs = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  constructor(store: Store, silenceMs: number) {
    this.#store = store;
    this.#silenceMs = silenceMs;
  }

  start(): void {
    this.#store.subscribe((event) => this.#look(event));
    if (Number.isFinite(this.#silenceMs)) {
      this.#timer = setInterval(() => this.#findSilent(), Math.max(10, this.#silenceMs / 10)).unref();
    }
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look({ resource, key, deleted, previous, current }: StoreEvent): void {
    if (deleted) return;
    if (resource === "leases.coordination.k8s.io" && key.startsWith("kube-node-lease/")) {
      this.#heardMs.set(current.metadata.name, performance.now());
    }
    if (resource !== "nodes") return;
    // Only the kubelet's own writes are heartbeats, not this controller's.
    const beat = (node: ApiObject | undefined): Fields => ({
      beats: itemsAt(node, "status.conditions").map((each) => each["lastHeartbeatTime"] ?? ""),
    });
    if (!sameJson(beat(previous), beat(current))) this.#heardMs.set(key, performance.now());
    later(() => this.#taint(key));
  }

  #taint(name: string): void {
    const node = this.#store.get("nodes", name);
    if (node === undefined) return;
    const taints = taintsOf(node);
    if (sameJson([...taints], [...itemsAt(node, "spec.taints")])) return;
    const { taints: _old, ...spec } = fieldsAt(node, "spec");
    this.#store.put("nodes", name, { ...node, spec: taints.length === 0 ? spec : { ...spec, taints } });
  }

  #findSilent(): void {
    for (const node of this.#store.all("nodes")) {
      const { name } = node.metadata;
      const silentMs = performance.now() - (this.#heardMs.get(name) ?? 0);
      const conditions = itemsAt(node, "status.conditions");
      const isKnown = conditions.some(({ type, status }) => type === "Ready" && status !== "Unknown");
      if (silentMs < this.#silenceMs || !isKnown) continue;
      const reason = { reason: "NodeStatusUnknown", message: "Kubelet stopped posting node status." };
      const unknown = { status: "Unknown", lastTransitionTime: timestamp(), ...reason };
      const changed = conditions.map((each) => (each["type"] === "Ready" ? { ...each, ...unknown } : each));
      this.#store.put("nodes", name, { ...node, status: { ...fieldsAt(node, "status"), conditions: changed } });
    }
  }
}

/**
 * Maintains taints for nodes' conditions, and marks silent nodes as unknown.
 * @param silenceMs maximum time without a renewed lease or status (50 s in a real cluster); may be infinite
 * @returns stops it
 */
export function watchNodes(store: Store, silenceMs: number): Disposable {
  const lifecycle = new NodeLifecycle(store, silenceMs);
  lifecycle.start();
  return { [Symbol.dispose]: () => lifecycle.stop() };
}
