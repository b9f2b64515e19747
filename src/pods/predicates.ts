import { isStaticPod } from "../api/pod-kind.ts";
import type { RejectionReason } from "../journal/vocabulary.ts";
import type { Pod } from "../api/pod.ts";
import { hugePageAmounts, pageSizeOf } from "../resources/huge-pages.ts";
import { parseList, podRequests, type Quantities } from "../resources/pod-totals.ts";
import type { Quantity } from "../resources/quantity.ts";
import { hostPortConflict } from "./host-ports.ts";
import { matchesNode } from "./node-affinity.ts";

/** A node as the API server has it. */
export interface NodePlace {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  /** The extended resources of this node's pods. */
  readonly extended?: Readonly<Record<string, string>>;
}

export interface Taint {
  readonly key: string;
  readonly value?: string | undefined;
  readonly effect: string;
}

/** The facts of a node that decide whether a pod fits. */
export interface PredicateNode {
  /** Amounts by resource name, `pods` included; a missing name is unlimited. */
  readonly allocatable: Readonly<Record<string, string | number>>;
  /** Undefined: standalone, where scheduling constraints do not apply. */
  readonly place: NodePlace | undefined;
}

/** Why a pod does not fit. Amounts are in millicores, bytes or pieces. */
export type Failure =
  | {
      readonly kind: "resource";
      readonly name: string;
      readonly requested: bigint;
      readonly used: bigint;
      readonly capacity: bigint;
    }
  | { readonly kind: "predicate"; readonly name: RejectionReason; readonly text: string };

/**
 * All objections against a pod on this node beside others, in upstream's order: resources, labels, node name, host
 * ports, taints. Pure.
 * @param has a running pod as allocated: resources of which it requests no more are no objection
 */
export function predicateFailures(pod: Pod, others: readonly Pod[], node: PredicateNode, has?: Pod): Failure[] {
  return [...lackingResources(pod, others, node, has), ...misplacements(pod, others, node)];
}

function* lackingResources(pod: Pod, others: readonly Pod[], node: PredicateNode, has?: Pod): Iterable<Failure> {
  const allocatable = new Map([...parseList(node.place?.extended), ...parseList(node.allocatable)]);
  const places = allocatable.get("pods")?.value();
  if (has === undefined && places !== undefined && BigInt(others.length) + 1n > places) {
    yield { kind: "resource", name: "pods", requested: 1n, used: BigInt(others.length), capacity: places };
  }
  const requests = podRequests(pod);
  const held: Quantities = has === undefined ? new Map() : podRequests(has);
  const used = others.map((other) => podRequests(other));
  const first = ["cpu", "memory", "ephemeral-storage"];
  const names = [...first, ...[...requests.keys()].filter((name) => !first.includes(name)).toSorted()];
  for (const name of names) {
    const requested = amountOf(requests, name);
    const capacity = capacityOf(allocatable, name);
    if (requested <= amountOf(held, name) || capacity === undefined) continue;
    const taken = used.reduce((sum, quantities) => sum + amountOf(quantities, name), 0n);
    if (requested + taken > capacity) yield { kind: "resource", name, requested, used: taken, capacity };
  }
}

/** Missing huge pages count as none; other resources that the node does not list are not checked here. */
function capacityOf(allocatable: Quantities, name: string): bigint | undefined {
  if (pageSizeOf(name) !== undefined) return amountOf(allocatable, name);
  const quantity = allocatable.get(name);
  return quantity && figure(name, quantity);
}

/** The name in {@link Failure}. Huge pages are compared by size, however it is written. */
export function amountOf(quantities: Quantities, name: string): bigint {
  const size = pageSizeOf(name);
  if (size !== undefined) return hugePageAmounts(quantities).get(size) ?? 0n;
  const quantity = quantities.get(name);
  return quantity === undefined ? 0n : figure(name, quantity);
}

function figure(name: string, quantity: Quantity): bigint {
  return name === "cpu" ? quantity.milliValue() : quantity.value();
}

function* misplacements(pod: Pod, others: readonly Pod[], { place }: PredicateNode): Iterable<Failure> {
  const failed = (name: RejectionReason, text: string): Failure => ({ kind: "predicate", name, text });
  if (place !== undefined) {
    if (!matchesNode(pod, place)) {
      yield failed("NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector");
    }
    if (pod.spec.nodeName && pod.spec.nodeName !== place.name) {
      yield failed("NodeName", "Predicate NodeName failed: node(s) didn't match the requested node name");
    }
  }
  const conflict = hostPortConflict(pod, others);
  if (conflict !== undefined) {
    const text = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";
    yield failed("NodePorts", `${text} (${conflict})`);
  }
  if (place !== undefined && !isStaticPod(pod) && place.taints.some((taint) => evicts(taint, pod))) {
    const text = "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate";
    yield failed("TaintToleration", text);
  }
}

/** Only NoExecute matters to a kubelet: the other effects are for schedulers. */
function evicts(taint: Taint, { spec }: Pod): boolean {
  return taint.effect === "NoExecute" && !(spec.tolerations ?? []).some((toleration) => tolerates(toleration, taint));
}

type Toleration = NonNullable<Pod["spec"]["tolerations"]>[number];

/** Whether a toleration matches a taint. Pure. */
export function tolerates({ key, operator, value, effect }: Toleration, taint: Taint): boolean {
  if (effect && effect !== taint.effect) return false;
  if (key ? key !== taint.key : operator !== "Exists") return false;
  return operator === "Exists" || ((operator ?? "Equal") === "Equal" && (value ?? "") === (taint.value ?? ""));
}
