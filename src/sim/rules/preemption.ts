import type { Pod } from "../../api/pod.ts";
import { lifeStarted } from "../../journal/entry.ts";
import { isRejection } from "../../journal/vocabulary.ts";
import type { KnownPod } from "../../kubelet/known-pods.ts";
import { podRequests } from "../../resources/pod-totals.ts";
import { parseQuantity } from "../../resources/quantity.ts";
import { type QosClass, qosClass } from "../../resources/qos.ts";
import type { SimEntry } from "../life/node.ts";
import { dataText } from "./entry-data.ts";
import type { Break, Rule, Scene } from "./rule.ts";

const limited = ["cpu", "memory"] as const;
type Limited = (typeof limited)[number];
/** In preemption order. */
const classes = ["BestEffort", "Burstable", "Guaranteed"] as const;
const criticalPriority = 2_000_000_000;

/** A pod that may hold resources of the node. */
interface Part {
  readonly pod: Pod;
  /** It runs, or will, and podwright has reported its status: it counts for certain. */
  readonly isSure: boolean;
  /** All allocations that it may have, the visible one first. */
  readonly grants: readonly Pod[];
}

/** Pods preempted for one pod at one moment, and the pods with resources before. */
interface Preemption extends Omit<Part, "isSure"> {
  readonly parts: readonly Part[];
  readonly victims: Pod[];
}

/**
 * Pods are preempted only for a critical pod, and only if they have a lower priority; as many as needed, and those of a
 * higher QoS class only for what lower ones cannot provide; and then they stop, and the pod starts.
 */
export class Preemptions implements Rule {
  readonly #scene: Scene;
  readonly #broken: Break;
  #current: Preemption | undefined;
  /** Pods for which others were preempted in this run, and that must be admitted. */
  readonly #coming = new Map<string, Preemption>();
  /** Allocations last granted by a resize in this run. */
  readonly #granted = new Map<string, Pod>();
  /** All manifests of each pod, by UID. */
  readonly #manifests = new Map<string, Pod[]>();

  constructor(scene: Scene, broken: Break) {
    this.#scene = scene;
    this.#broken = broken;
  }

  changed(before: Pod | undefined, after: Pod): void {
    const { uid } = after.metadata;
    this.#close();
    this.#coming.delete(uid);
    // A pod that waits before them, and requests more by now, takes from the freed room.
    const grows = before !== undefined && limited.some((name) => requestOf(after, name) > requestOf(before, name));
    if (grows) this.#coming.clear();
    this.#manifests.set(uid, [...(this.#manifests.get(uid) ?? (before ? [before] : [])), after]);
  }

  reborn(uid: string): void {
    for (const known of [this.#coming, this.#granted, this.#manifests]) known.delete(uid);
  }

  entry(entry: SimEntry): void {
    const { what, pod, cause } = entry;
    const uid = pod?.uid ?? "";
    if (what === "Preempting") return this.#preempting(entry);
    if (what === "PodTerminating" && cause?.code === "Preempting") return;
    this.#close();
    if (what === lifeStarted) for (const known of [this.#coming, this.#granted]) known.clear();
    // A changed request may be too large. For pods of a cluster the journal comes first.
    if (what === "RunPodSandbox" || what === "PodChanged") this.#coming.delete(uid);
    const wanted = this.#scene.pods.get(uid);
    if (what === "ResizeStarted" && wanted !== undefined) this.#granted.set(uid, wanted);
    const preemption = this.#coming.get(uid);
    if (!isRejection(what) || preemption === undefined) return;
    this.#coming.delete(uid);
    // A node that shuts down has no room for anybody.
    if (what === "NodeShutdown" || this.#scene.unwanted.has(uid) || this.#standsBack(preemption)) return;
    this.#broken("preemption makes enough room", `${uid} was refused (${what}) after others had to go for it`);
  }

  atRest(): void {
    this.#close();
  }

  #preempting(entry: SimEntry): void {
    const { pods, node } = this.#scene;
    const uid = dataText(entry, "preemptor");
    const pod = pods.get(uid) ?? node.desired.get(uid);
    const victim = pods.get(entry.pod?.uid ?? "");
    if (pod === undefined || victim === undefined) {
      return this.#broken(
        "only critical pods are made room for",
        `${entry.pod?.uid} is preempted for ${uid}, which no source has`,
      );
    }
    if (this.#current?.pod !== pod) {
      this.#close();
      // A returning pod is admitted with its earlier allocation, from any of its manifests.
      const grants = [pod, node.desired.get(uid) ?? pod, ...(this.#manifests.get(uid) ?? [])];
      this.#current = { pod, grants, parts: this.#parts(pod), victims: [] };
    }
    this.#current.victims.push(victim);
  }

  /** All pods to be preempted for one pod have been named. */
  #close(): void {
    const current = this.#current;
    if (current === undefined) return;
    this.#current = undefined;
    const { pod, victims } = current;
    const names = `${victims.map(({ metadata }) => metadata.uid).join(", ")} for ${pod.metadata.uid}`;
    for (const [rule, detail] of preemptionProblems(current, this.#scene.node.allocatable)) {
      this.#broken(rule, `${names}: ${detail}`);
    }
    const states = this.#scene.node.pods().map(({ view }) => [view.ref.uid, view.state.kind] as const);
    for (const { metadata } of victims) {
      const stays = states.some(([uid, kind]) => uid === metadata.uid && kind === "syncing");
      if (stays) this.#broken("preempted pods stop", `${names}: ${metadata.uid} stays`);
      this.#coming.delete(metadata.uid);
    }
    this.#coming.set(pod.metadata.uid, current);
  }

  /** A pod of higher priority has appeared since. */
  #standsBack({ pod, parts }: Preemption): boolean {
    return this.#parts(pod).some(
      ({ pod: other }) => countsLess(pod, other) && !parts.some((part) => part.pod === other),
    );
  }

  /** Other pods that may hold resources; one of its own name releases them anyway. */
  #parts({ metadata }: Pod): Part[] {
    const { desired } = this.#scene.node;
    return this.#scene.node.pods().flatMap((known): Part[] => {
      const { ref, state } = known.view;
      // A pod that is desired again gets its resources back when the earlier one is gone.
      const isBack = desired.has(ref.uid) && (state.kind === "terminating" || this.#scene.unwanted.has(ref.uid));
      const mayStay = state.kind === "syncing" || isBack;
      const pod = this.#scene.pods.get(ref.uid);
      if (!mayStay || pod === undefined || ref.name === metadata.name) return [];
      const isSure = state.kind === "syncing" && known.status !== undefined;
      return [{ pod, isSure, grants: this.#grants(known, pod, isSure) }];
    });
  }

  #grants({ view }: KnownPod, pod: Pod, isSure: boolean): Pod[] {
    const { uid } = pod.metadata;
    const { node } = this.#scene;
    const shown = view.pod ?? pod;
    // In a cluster a change is known here only after podwright has acted.
    if (isSure && node.cluster === undefined) return [this.#granted.get(uid) ?? shown];
    return [shown, pod, node.desired.get(uid) ?? pod, ...(this.#manifests.get(uid) ?? [])];
  }
}

/** Problems: the rule, and details. Pure. */
export function preemptionProblems(
  { pod, grants, parts, victims }: Preemption,
  allocatable: Readonly<Record<string, string | number>>,
): (readonly [rule: string, detail: string])[] {
  const problems: [string, string][] = [];
  if (!isCritical(pod)) problems.push(["only critical pods are made room for", "it is not critical"]);
  for (const victim of victims) {
    const { uid } = victim.metadata;
    if (!countsLess(victim, pod)) problems.push(["equally important pods stay", `${uid} counts as much`]);
  }
  const isMore = (name: Limited, others: readonly Part[], pick: Amount): boolean => {
    const requests = [{ grants }, ...others].map((part) => pick(part.grants.map((grant) => requestOf(grant, name))));
    const [own = 0n] = requests;
    const capacity = allocatable[name];
    const total = requests.reduce((sum, request) => sum + request, 0n);
    return capacity !== undefined && own > 0n && total > parseQuantity(capacity).nanos;
  };
  const staying = (gone: readonly Pod[]): Part[] => parts.filter(({ pod: other }) => !gone.includes(other));
  const known = staying(victims).filter(({ isSure }) => isSure);
  const lack = limited.find((name) => isMore(name, known, least));
  if (lack !== undefined) problems.push(["preemption makes enough room", `there is still too little ${lack}`]);
  const lower: Pod[] = [];
  const classOf = (one: Pod): QosClass => grantedClass(one, parts);
  for (const own of classes) {
    const open = parts.filter((part) => part.isSure && countsLess(part.pod, pod) && classOf(part.pod) === own);
    const higher = victims.filter((victim) => classes.indexOf(classOf(victim)) > classes.indexOf(own));
    const last = victims.findLast((victim) => classOf(victim) === own);
    const others = [...lower, ...higher, ...victims.filter((victim) => classOf(victim) === own && victim !== last)];
    const isEnough = !limited.some((name) => isMore(name, staying(others), most));
    if (last !== undefined && isEnough) {
      problems.push(["preemption makes enough room", `there is room without ${last.metadata.uid}, which is ${own}`]);
    }
    lower.push(...open.map((part) => part.pod));
  }
  return problems;
}

/** By its allocation: a resize that would change the class is never granted. */
function grantedClass(pod: Pod, parts: readonly Part[]): QosClass {
  const [grant = pod] = parts.find((part) => part.pod === pod)?.grants ?? [];
  return qosClass(grant);
}

/** One of the amounts that may have been granted to a pod. */
type Amount = (requests: readonly bigint[]) => bigint;
const least: Amount = (requests) => requests.reduce((a, b) => (a < b ? a : b));
const most: Amount = (requests) => requests.reduce((a, b) => (a > b ? a : b));

function requestOf(pod: Pod, name: Limited): bigint {
  return podRequests(pod).get(name)?.nanos ?? 0n;
}

/** As Kubernetes defines it: static pods, their mirrors, and the two highest priority classes. */
function isCritical({ metadata, spec }: Pod): boolean {
  const { "kubernetes.io/config.source": source, "kubernetes.io/config.mirror": mirror } = metadata.annotations ?? {};
  return source === "file" || source === "http" || mirror !== undefined || (spec.priority ?? 0) >= criticalPriority;
}

/** Whether the pod may be preempted for the critical one: it is not critical, or of a lower priority. */
function countsLess(victim: Pod, pod: Pod): boolean {
  if (!isCritical(pod)) return false;
  if (!isCritical(victim)) return true;
  const [its, own] = [victim.spec.priority, pod.spec.priority];
  return its !== undefined && own !== undefined && its < own;
}
