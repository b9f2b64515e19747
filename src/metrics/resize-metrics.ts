import { containersOf } from "../api/all-containers.ts";
import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import type { JournalInput } from "../journal/entry.ts";
import { parseQuantity, type Quantity, zeroQuantity } from "../resources/quantity.ts";
import { resizableResources } from "../resources/resizable.ts";
import { resizeBounds } from "./buckets.ts";
import type { Registry } from "./registry.ts";

/** Upstream's words for what makes resizes that wait be judged again; a change of the pod unless it is one of these. */
const triggers: Readonly<Record<string, string>> = {
  ManifestAdded: "pods_added",
  RoomMade: "pod_terminated",
  PodsRemoved: "pods_removed",
  ResizeCompleted: "pod_resized",
  ResizeRetry: "periodic_retry",
};

/** Requested, granted and completed resizes of running pods. */
export class ResizeMetrics {
  readonly #now: () => number;
  /** Pods as they were last wanted, by UID. */
  readonly #wanted = new Map<PodUid, Pod>();
  /** When a resize was granted, by UID. */
  readonly #granted = new Map<PodUid, number>();
  readonly #asked;
  readonly #infeasible;
  readonly #accepted;
  readonly #milliseconds;

  /** @param now wall clock ms */
  constructor(registry: Registry, now: () => number) {
    this.#now = now;
    this.#asked = registry.counter(
      "kubelet_container_requested_resizes_total",
      "Requested changes of container resources",
      ["resource", "requirement", "operation"],
    );
    this.#infeasible = registry.counter("kubelet_pod_infeasible_resizes_total", "Infeasible resizes, by reason", [
      "reason_detail",
    ]);
    this.#accepted = registry.counter(
      "kubelet_pod_deferred_accepted_resizes_total",
      "Deferred resizes that were granted, by trigger",
      ["retry_trigger"],
    );
    this.#milliseconds = registry.histogram(
      "kubelet_pod_resize_duration_milliseconds",
      "Time from the grant of a resize until it is done or fails, in milliseconds",
      ["success"],
      resizeBounds,
    );
  }

  /** The node was given a pod. */
  added(pod: Pod): void {
    this.#wanted.set(pod.metadata.uid, pod);
  }

  /** A pod that the node has is wanted otherwise. */
  changed(pod: Pod): void {
    const before = this.#wanted.get(pod.metadata.uid);
    this.#wanted.set(pod.metadata.uid, pod);
    if (before === undefined) return;
    const old = new Map(containersOf(before.spec).map((container) => [container.name, container]));
    for (const container of containersOf(pod.spec)) {
      const own = old.get(container.name);
      if (own !== undefined) this.#compare(own, container);
    }
  }

  recorded({ what, kind, pod, data, message }: JournalInput): void {
    if (pod === undefined) return;
    const { uid } = pod;
    if (what === "PodRemoved" && kind === "input") {
      this.#wanted.delete(uid);
      this.#granted.delete(uid);
    } else if (what === "ResizeInfeasible") this.#infeasible.add([detailOf(message)]);
    else if (what === "ResizeStarted") {
      // Only one that was deferred has it, be it by an earlier run.
      const trigger = data?.["trigger"];
      if (typeof trigger === "string") this.#accepted.add([triggers[trigger] ?? "pod_updated"]);
      this.#granted.set(uid, this.#now());
    } else if (what === "ResizeCompleted" || what === "ResizeError") this.#tried(uid, what === "ResizeCompleted");
  }

  #tried(uid: PodUid, success: boolean): void {
    const grantedMs = this.#granted.get(uid);
    // An earlier run granted it.
    if (grantedMs === undefined) return;
    this.#milliseconds.observe([`${success}`], Math.max(0, this.#now() - grantedMs));
    if (success) this.#granted.delete(uid);
  }

  #compare({ resources: before }: Container, { resources: after }: Container): void {
    for (const resource of resizableResources) {
      for (const requirement of ["requests", "limits"] as const) {
        const operation = operationOf(before?.[requirement]?.[resource], after?.[requirement]?.[resource]);
        if (operation !== undefined) this.#asked.add([resource, requirement, operation]);
      }
    }
  }
}

function operationOf(before: string | number | undefined, after: string | number | undefined): string | undefined {
  const [old, now] = [amount(before), amount(after)];
  const order = now.compare(old);
  if (order === 0) return undefined;
  if (old.compare(zeroQuantity) === 0) return "add";
  if (now.compare(zeroQuantity) === 0) return "remove";
  return order > 0 ? "increase" : "decrease";
}

function amount(value: string | number | undefined): Quantity {
  return value === undefined ? zeroQuantity : parseQuantity(`${value}`);
}

/** Upstream's words for why; the message says it in others. */
function detailOf(message: string): string {
  return message.includes("swap") ? "swap_limitation" : "not_resizable";
}
