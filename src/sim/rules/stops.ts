import type { Container } from "../../api/container.ts";
import { lifeStarted } from "../../journal/entry.ts";
import type { SimEntry } from "../life/node.ts";
import { dataText, idOf, whereOf } from "./entry-data.ts";
import type { Break, Rule, Scene } from "./rule.ts";
import { specContainers } from "./spec-containers.ts";

/** What StopContainer is given at least. */
const leastSeconds = 2;
const roundingMs = 2;
/** A grace that is over still gives the least, and its rest is rounded up. */
const lateMs = 3000;

/** What is stopped gets its time, by what podwright itself says of it: no less, no more, and its hook before. */
export class Stops implements Rule {
  readonly #scene: Scene;
  readonly #broken: Break;
  /** Simulated ms at which the grace of pods ends that this life stops. */
  readonly #ends = new Map<string, number>();
  /** Containers whose preStop hook this life has begun. */
  readonly #hooked = new Set<string>();
  /** Containers that this life has told to stop, or has tried to. */
  readonly #told = new Set<string>();
  /** Containers that this life has said to stop: the simulated ms at which it did, by the cause's code. */
  readonly #killing = new Map<string, Map<string, number>>();

  constructor(scene: Scene, broken: Break) {
    this.#scene = scene;
    this.#broken = broken;
  }

  reborn(uid: string): void {
    this.#ends.delete(uid);
  }

  entry(entry: SimEntry): void {
    const { kind, what, pod, cause } = entry;
    if (what === lifeStarted) for (const known of [this.#ends, this.#hooked, this.#told, this.#killing]) known.clear();
    if (what === "PodTerminating") this.#terminating(entry);
    if (what === "PodFinished") this.#ends.delete(pod?.uid ?? "");
    if (what === "Killing") this.#killed(entry);
    if (kind !== "action") return;
    if (what === "PreStopHook" || what === "StopContainer") this.#judgeTold(entry);
    if (what === "PreStopHook") this.#hooking(entry);
    if (what !== "StopContainer" || cause?.code === "ContainerGC") return;
    const seconds = Number(dataText(entry, "graceSeconds"));
    this.#judgeGrace(entry, seconds);
    this.#judgeHook(entry, seconds);
    this.#told.add(idOf(entry));
  }

  #killed(entry: SimEntry): void {
    const codes = this.#killing.get(idOf(entry)) ?? new Map<string, number>();
    const code = entry.cause?.code ?? "";
    if (codes.has(code)) this.#broken("a kill is told once", `${whereOf(entry)} is said to stop again: ${code}`);
    this.#killing.set(idOf(entry), codes.set(code, entry.atMs));
  }

  /** Whoever looks for why a container stops finds it from the beginning. */
  #judgeTold(entry: SimEntry): void {
    if (this.#killing.get(idOf(entry))?.has(entry.cause?.code ?? "") === true) return;
    this.#broken("a kill is told before it is done", `${entry.what} of ${whereOf(entry)} comes untold`);
  }

  #terminating({ pod, cause, atMs, time, until = time }: SimEntry): void {
    const uid = pod?.uid ?? "";
    const endMs = atMs + until - time;
    const before = this.#ends.get(uid);
    if (before !== undefined && endMs > before + roundingMs) {
      this.#broken("a grace only gets shorter", `${uid} gets ${endMs - before} ms more`);
    }
    this.#ends.set(uid, Math.min(endMs, before ?? endMs));
    // What an earlier life kept of it says how long it has, as long as the disk gives it.
    if (cause?.code !== "OrphanedPod" || !this.#isKept(uid) || this.#scene.node.diskFaultMs > atMs) return;
    const graceMs = (this.#scene.pods.get(uid)?.spec.terminationGracePeriodSeconds ?? 0) * 1000;
    if (endMs - atMs < graceMs - roundingMs) this.#broken("the whole grace", `orphan ${uid} gets ${endMs - atMs} ms`);
  }

  #judgeGrace(entry: SimEntry, seconds: number): void {
    const killMs = entry.atMs + seconds * 1000;
    const endMs = this.#endOf(entry.pod?.uid ?? "");
    const where = whereOf(entry);
    if (endMs === undefined) return this.#judgeProbe(entry, seconds);
    if (killMs < Math.min(endMs, this.#probeEndOf(entry)) - roundingMs) {
      this.#broken("the whole grace", `${where} is to be killed ${endMs - killMs} ms before its pod's grace ends`);
    }
    if (killMs > Math.max(endMs, entry.atMs) + lateMs) {
      this.#broken("no more than the grace", `${where} is to be killed ${killMs - endMs} ms after its pod's grace`);
    }
  }

  /** One that is stopped for its probe has what the probe says, its hook included, though its pod ends with it. */
  #probeEndOf(entry: SimEntry): number {
    const { livenessProbe, startupProbe } = this.#specOf(entry) ?? {};
    const code = entry.cause?.code ?? "";
    if (code !== "LastContainerUnhealthy") return Number.POSITIVE_INFINITY;
    const own = [livenessProbe, startupProbe].map((probe) => probe?.terminationGracePeriodSeconds ?? Infinity);
    return (this.#killing.get(idOf(entry))?.get(code) ?? entry.atMs) + Math.min(...own) * 1000;
  }

  /** What podwright has said itself, unless it was told since that the pod is to go sooner. */
  #endOf(uid: string): number | undefined {
    const { node, unwanted } = this.#scene;
    const endMs = this.#ends.get(uid);
    const { graceSeconds, sinceMs = 0, told, life } = unwanted.get(uid) ?? {};
    if (endMs === undefined || graceSeconds === undefined || told !== true || life !== node.lives) return endMs;
    return Math.min(endMs, sinceMs + Math.max(1, graceSeconds) * 1000);
  }

  /** A probe may have a grace of its own, of which a hook may have taken some. */
  #judgeProbe(entry: SimEntry, seconds: number): void {
    const type = /^(Startup|Liveness)ProbeFailed$/.exec(entry.cause?.code ?? "")?.[1];
    const container = this.#specOf(entry);
    if (type === undefined || container === undefined || container.lifecycle?.preStop !== undefined) return;
    const probe = type === "Startup" ? container.startupProbe : container.livenessProbe;
    const ofPod = this.#scene.pods.get(entry.pod?.uid ?? "")?.spec.terminationGracePeriodSeconds ?? 0;
    const due = Math.max(leastSeconds, probe?.terminationGracePeriodSeconds ?? ofPod);
    if (seconds !== due) this.#broken("the grace of the probe", `${whereOf(entry)} gets ${seconds} s, not ${due}`);
  }

  /** However often its stop is asked for. */
  #hooking(entry: SimEntry): void {
    const id = idOf(entry);
    if (this.#hooked.has(id)) this.#broken("preStop once", `the hook of ${whereOf(entry)} is begun again`);
    this.#hooked.add(id);
  }

  #judgeHook(entry: SimEntry, seconds: number): void {
    if (this.#specOf(entry)?.lifecycle?.preStop === undefined || seconds <= leastSeconds) return;
    const isForgotten = entry.cause?.code === "OrphanedPod" && !this.#isKept(entry.pod?.uid ?? "");
    // One that starts over with its pod is stopped without hooks: told so before, it is too late for them.
    if (this.#hooked.has(idOf(entry)) || this.#told.has(idOf(entry)) || isForgotten) return;
    this.#broken("preStop before SIGTERM", `${whereOf(entry)} is stopped without it`);
  }

  #specOf({ pod, container }: SimEntry): Container | undefined {
    return specContainers(this.#scene.pods, pod?.uid).find(({ name }) => name === container);
  }

  #isKept(uid: string): boolean {
    return this.#scene.node.files.ownerOf(`/var/lib/kubelet/pods/${uid}/podwright-pod.json`) !== undefined;
  }
}
