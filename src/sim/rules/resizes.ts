import type { Container } from "../../api/container.ts";
import type { EntryName } from "../../journal/vocabulary.ts";
import type { Pod } from "../../api/pod.ts";
import type { KnownPod } from "../../kubelet/known-pods.ts";
import type { CgroupResources } from "../../ports/cgroups.ts";
import { podCgroupResources } from "../../resources/pod-resources.ts";
import { podRequests } from "../../resources/pod-totals.ts";
import { parseQuantity, type Quantity, zeroQuantity } from "../../resources/quantity.ts";
import type { SimEntry } from "../life/node.ts";
import { nameOf, type SimContainer, type WorldChange } from "../world-model.ts";
import type { Break, Rule, Scene } from "./rule.ts";

const cgroupSettings = { cpuQuota: true, cpuPeriodMicroseconds: 100_000n, podPidsLimit: -1, hugePageSizes: [] };
const resizable = ["cpu", "memory"] as const;

/** Three minutes, and the time for an inspection. */
const lookedAgainMs = 200_000;
const freeing: ReadonlySet<EntryName> = new Set<EntryName>([
  ...(["PodTerminated", "PodFinished", "ResizeStarted"] as const),
  // Meanwhile the node takes no pods, and grants no resizes.
  ...(["NodePressureChanged", "ShutdownCancelled"] as const),
]);

interface Running {
  readonly container: Container;
  readonly instance: SimContainer;
}

/**
 * Resizes that fit are granted and no others; nothing is restarted for a resize that does not require it; no container
 * ever has more than its pod; and in the end containers have the resources in the manifest.
 */
export class Resizes implements Rule {
  readonly #scene: Scene;
  readonly #broken: Break;
  /** All manifests of each pod by UID, in order, and how many of them may have been granted. */
  readonly #manifests = new Map<string, { readonly all: Pod[]; granted: number }>();
  /** Simulated ms at which what delays resizes last ended. */
  #freedMs = Number.NEGATIVE_INFINITY;

  constructor(scene: Scene, broken: Break) {
    this.#scene = scene;
    this.#broken = broken;
  }

  changed(before: Pod | undefined, after: Pod): void {
    const { uid } = after.metadata;
    const known = this.#manifests.get(uid) ?? { all: [], granted: 1 };
    if (before !== undefined && known.all.at(-1) !== before) known.all.push(before);
    known.all.push(after);
    this.#manifests.set(uid, known);
  }

  reborn(uid: string): void {
    this.#manifests.delete(uid);
  }

  change({ type, podUid: uid, container, before }: WorldChange): void {
    if (type === "resized" && container !== undefined) this.#resized(uid, container, before);
  }

  entry({ kind, what, pod, container, cause, atMs, result }: SimEntry): void {
    const uid = pod?.uid ?? "";
    if (what === "UpdatePodCgroup" && result === "done" && this.#scene.node.diskFaultMs < 0) this.#judgeAll(uid);
    if (what === "ResizeStarted") {
      const known = this.#manifests.get(uid);
      // The node now shows the pod's allocation.
      this.#granted(uid, known?.all[known.granted - 1]);
      if (known !== undefined) known.granted = known.all.length;
    }
    if (freeing.has(what)) this.#freedMs = atMs;
    if (kind !== "action" || what !== "StopContainer" || cause?.code !== "ResizeStarted") return;
    const spec = this.#scene.pods.get(uid)?.spec.containers.find(({ name }) => name === container);
    const restarts = spec?.resizePolicy?.some(({ restartPolicy }) => restartPolicy === "RestartContainer");
    if (restarts !== true) this.#broken("no restart for a resize", `${uid}/${container} was stopped for one`);
  }

  disagreements(): string[] {
    const known = this.#scene.node.pods();
    return [...this.#scene.node.desired.values()].flatMap((pod) => {
      const running = this.#runningOf(pod);
      const own = known.find(({ view }) => view.ref.uid === pod.metadata.uid);
      if (running.length === 0) return [];
      if (own?.view.resize?.pending !== undefined) return this.#pendingProblems(pod, own, known);
      const reported = running.flatMap((each) => reportedProblems(pod.metadata.uid, each, own));
      const had = running.flatMap((each) => containerProblems(pod.metadata.uid, each));
      return [...had, ...reported, ...this.#cgroupProblems(pod)];
    });
  }

  #resized(uid: string, instance: SimContainer, before: WorldChange["before"]): void {
    const { node, pods } = this.#scene;
    const { memoryLimitInBytes: memory = 0n, cpuQuota: quota = 0n } = instance.resources ?? {};
    const where = `${uid}/${nameOf(instance)}`;
    const spec = pods.get(uid)?.spec.containers.find(({ name }) => name === nameOf(instance));
    const wants = (name: string): boolean =>
      spec?.resizePolicy?.some((policy) => policy.resourceName === name && policy.restartPolicy !== "NotRequired") ===
      true;
    const changed = {
      cpu: before?.cpuShares !== instance.resources?.cpuShares || before?.cpuQuota !== quota,
      memory: before?.memoryLimitInBytes !== memory,
    };
    // A change that could not be recorded is unknown after a restart, and nothing is restarted for it.
    if (node.diskFaultMs >= 0) return;
    this.#judgeAll(uid);
    if (!this.#mayHave(uid, instance)) this.#broken("resizes are granted first", `${where} got what was not granted`);
    const inPlace = resizable.find((name) => changed[name] && wants(name));
    if (inPlace !== undefined) this.#broken("a restart for a resize", `${where} got other ${inPlace} without one`);
  }

  /** Identified by CPU, which rarely coincides between manifests. */
  #mayHave(uid: string, instance: SimContainer): boolean {
    const { all, granted } = this.#manifests.get(uid) ?? { all: [], granted: 0 };
    // In a cluster this is known here only after podwright has acted.
    if (this.#scene.node.cluster !== undefined || granted >= all.length) return true;
    const known = all.slice(0, granted).map((pod) => {
      const spec = pod.spec.containers.find(({ name }) => name === nameOf(instance));
      return sharesOf(parseQuantity(spec?.resources?.requests?.["cpu"] ?? "0"));
    });
    return known.includes(instance.resources?.cpuShares ?? 0n);
  }

  #judgeAll(uid: string): void {
    const pod = this.#cgroupOf(uid);
    const [podMemory, podQuota] = [pod?.memoryLimitBytes ?? -1, pod?.cpuQuotaMicroseconds ?? -1];
    for (const { state, config, resources } of this.#scene.world.containers.values()) {
      if (state !== "running" || config.labels["io.kubernetes.pod.uid"] !== uid) continue;
      const { memoryLimitInBytes: memory = 0n, cpuQuota: quota = 0n } = resources ?? {};
      const isMore = (podMemory > 0 && memory > podMemory) || (podQuota > 0 && quota > podQuota);
      const where = `${uid}/${config.metadata?.name}`;
      if (isMore) this.#broken("no container has more than its pod", `${where} has ${memory} bytes, quota ${quota}`);
    }
  }

  /** An allocation must fit beside the others, unless it does not grow. */
  #granted(uid: string, before: Pod | undefined): void {
    // In a cluster this is known here only after podwright has acted.
    if (this.#scene.node.cluster !== undefined) return;
    const pod = this.#scene.pods.get(uid);
    const known = this.#scene.node.pods();
    if (pod === undefined || before === undefined) return;
    for (const name of resizable) {
      const grows = requestOf(pod, name).compare(requestOf(before, name)) > 0;
      const lack = grows && this.#lack(pod, name, known, true);
      if (lack) this.#broken("resizes fit the node", `${uid} was granted ${name} although ${lack}`);
    }
  }

  /** A resize waits only as long as there is no room for it, or the node takes no pods. */
  #pendingProblems(pod: Pod, { view }: KnownPod, known: readonly KnownPod[]): string[] {
    const lacks = resizable.some((name) => this.#lack(pod, name, known, false) !== undefined);
    const { uid } = pod.metadata;
    if (this.#scene.node.pressures.length > 0) return [];
    // Freed room without a notification is found at the next resync.
    if (this.#scene.clock.nowMs < this.#freedMs + lookedAgainMs) return [];
    return lacks ? [] : [`the resize of ${uid} waits for nothing: ${view.resize?.pending?.message ?? ""}`];
  }

  /**
   * Why the pod's request does not fit. The allocation of pods that are being resized is uncertain: `least` counts the
   * smaller value, otherwise the greater.
   */
  #lack(pod: Pod, name: "cpu" | "memory", known: readonly KnownPod[], least: boolean): string | undefined {
    const { allocatable, desired } = this.#scene.node;
    const capacity = allocatable[name];
    if (capacity === undefined) return undefined;
    let total = requestOf(pod, name);
    for (const { view } of known) {
      const { uid } = view.ref;
      if (uid === pod.metadata.uid || !["syncing", "terminating"].includes(view.state.kind)) continue;
      const [shown, wanted] = [view.pod, desired.get(uid) ?? view.pod].map((each) => each && requestOf(each, name));
      if (shown === undefined || wanted === undefined) continue;
      total = total.add(shown.compare(wanted) < 0 === least ? shown : wanted);
    }
    return total.compare(parseQuantity(capacity)) > 0 ? `${total.toString()} are more than ${capacity}` : undefined;
  }

  #runningOf(pod: Pod): Running[] {
    return pod.spec.containers.flatMap((container) => {
      const instance = this.#scene.world.running(pod.metadata.uid, container.name);
      return instance === undefined ? [] : [{ container, instance }];
    });
  }

  #cgroupOf(uid: string): CgroupResources | undefined {
    return [...this.#scene.node.cgroups.applied].find(([path]) => path.endsWith(`/pod${uid}`))?.[1];
  }

  #cgroupProblems(pod: Pod): string[] {
    const wanted = podCgroupResources(pod, cgroupSettings);
    const found = this.#cgroupOf(pod.metadata.uid);
    return (["cpuShares", "cpuQuotaMicroseconds", "memoryLimitBytes"] as const)
      .filter((name) => wanted[name] !== undefined && wanted[name] !== found?.[name])
      .map((name) => `the cgroup of ${pod.metadata.uid} has ${name} ${found?.[name]}, not ${wanted[name]}`);
  }
}

function requestOf(pod: Pod, name: string): Quantity {
  return podRequests(pod).get(name) ?? zeroQuantity;
}

function sharesOf(cpu: Quantity): bigint {
  return (cpu.milliValue() * 1024n) / 1000n;
}

/** The status has the cgroup's values, whatever the runtime remembers. */
function reportedProblems(uid: string, { container, instance }: Running, known: KnownPod | undefined): string[] {
  const reported = known?.status?.containerStatuses?.find(({ name }) => name === container.name);
  const memory = reported?.resources?.limits?.["memory"];
  const has = instance.resources?.memoryLimitInBytes ?? 0n;
  if (reported?.state.running === undefined || memory === undefined || has === 0n) return [];
  const says = parseQuantity(memory).value();
  return says === has ? [] : [`${uid}/${container.name} reports memory ${says}, and has ${has}`];
}

/** By the kernel's formulas, independent of podwright's code. */
function containerProblems(uid: string, { container, instance }: Running): string[] {
  const { requests, limits } = container.resources ?? {};
  const has = instance.resources ?? instance.config.linux?.resources;
  const problem = (what: string, is: bigint | undefined, should: bigint): string[] =>
    is === should ? [] : [`${uid}/${container.name} has ${what} ${is}, not ${should}`];
  const cpu = requests?.["cpu"];
  const cpuLimit = limits?.["cpu"];
  const memory = limits?.["memory"];
  return [
    ...(cpu === undefined ? [] : problem("shares", has?.cpuShares, sharesOf(parseQuantity(cpu)))),
    ...(cpuLimit === undefined ? [] : problem("quota", has?.cpuQuota, parseQuantity(cpuLimit).milliValue() * 100n)),
    ...(memory === undefined ? [] : problem("memory", has?.memoryLimitInBytes, parseQuantity(memory).value())),
  ];
}
