import { isRecorded } from "../life/recorded.ts";
import type { Container } from "../../api/container.ts";
import { lifeStarted } from "../../journal/entry.ts";
import type { SimEntry } from "../life/node.ts";
import { dataText, idOf, whereOf } from "./entry-data.ts";
import type { Break, Rule, Scene } from "./rule.ts";
import { specContainers } from "./spec-containers.ts";

/** Minimum timeout of StopContainer. */
const leastSeconds = 2;
const roundingMs = 2;
/** After the grace period the minimum still applies, and its rest is rounded up. */
const lateMs = 3000;

/** Stops respect the grace period that podwright itself reports: no less, no more, with the hook first. */
export class Stops implements Rule {
  readonly #scene: Scene;
  readonly #broken: Break;
  /** Simulated ms at which the grace periods of pods end that this run stops. */
  readonly #ends = new Map<string, number>();
  /** Simulated ms since which this run stops pods. */
  readonly #starts = new Map<string, number>();
  /** Containers whose preStop hook this run has begun. */
  readonly #hooked = new Set<string>();
  /** Containers that this run has told, or tried to tell, to stop. */
  readonly #stopped = new Set<string>();
  /** Containers whose stop this run has reported: the simulated ms, by the cause's code. */
  readonly #killing = new Map<string, Map<string, number>>();

  constructor(scene: Scene, broken: Break) {
    this.#scene = scene;
    this.#broken = broken;
  }

  reborn(uid: string): void {
    this.#ends.delete(uid);
    this.#starts.delete(uid);
  }

  entry(entry: SimEntry): void {
    const { kind, what, pod, cause } = entry;
    if (what === lifeStarted) {
      for (const known of [this.#ends, this.#starts, this.#hooked, this.#stopped, this.#killing]) known.clear();
    }
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
    this.#stopped.add(idOf(entry));
  }

  #killed(entry: SimEntry): void {
    const codes = this.#killing.get(idOf(entry)) ?? new Map<string, number>();
    const code = entry.cause?.code ?? "";
    if (codes.has(code)) this.#broken("a kill is reported once", `${whereOf(entry)} is said to stop again: ${code}`);
    this.#killing.set(idOf(entry), codes.set(code, entry.atMs));
  }

  /** The reason for a stop is recorded from the beginning. */
  #judgeTold(entry: SimEntry): void {
    if (this.#killing.get(idOf(entry))?.has(entry.cause?.code ?? "") === true) return;
    this.#broken("a kill is reported before it happens", `${entry.what} of ${whereOf(entry)} comes untold`);
  }

  #terminating({ pod, cause, atMs, time, until = time }: SimEntry): void {
    const uid = pod?.uid ?? "";
    const endMs = atMs + until - time;
    const before = this.#ends.get(uid);
    if (before !== undefined && endMs > before + roundingMs) {
      this.#broken("grace periods only get shorter", `${uid} gets ${endMs - before} ms more`);
    }
    this.#ends.set(uid, Math.min(endMs, before ?? endMs));
    this.#starts.set(uid, this.#starts.get(uid) ?? atMs);
    // The record of an earlier run determines its grace period, if the disk is readable.
    const { diskFaultMs, power } = this.#scene.node;
    if (cause?.code !== "OrphanedPod" || !this.#isKept(uid) || diskFaultMs > atMs) return;
    // A shutdown gives it no more than its group has.
    if (power.login.isPreparing) return;
    // It may have been deleted with less than its own, which an earlier run knew. More is not recorded.
    const ownSeconds = this.#scene.pods.get(uid)?.spec.terminationGracePeriodSeconds ?? 0;
    const graceSeconds = Math.min(ownSeconds, this.#scene.unwanted.get(uid)?.graceSeconds ?? ownSeconds);
    const graceMs = graceSeconds * 1000;
    if (endMs - atMs < graceMs - roundingMs) {
      this.#broken("the full grace period", `orphan ${uid} gets ${endMs - atMs} ms`);
    }
  }

  #judgeGrace(entry: SimEntry, seconds: number): void {
    const killMs = entry.atMs + seconds * 1000;
    const endMs = this.#endOf(entry.pod?.uid ?? "");
    const where = whereOf(entry);
    if (endMs === undefined) return this.#judgeProbe(entry, seconds);
    if (killMs < Math.min(endMs, this.#probeEndOf(entry)) - roundingMs) {
      this.#broken(
        "the full grace period",
        `${where} is to be killed ${endMs - killMs} ms before its pod's grace ends`,
      );
    }
    if (killMs > Math.max(endMs, entry.atMs) + lateMs) {
      this.#broken(
        "no more than the grace period",
        `${where} is to be killed ${killMs - endMs} ms after its pod's grace`,
      );
    }
  }

  /**
   * A container stopped for its probe gets the probe's grace period, including its hook, even if its pod ends as well. What
   * a slow disk takes until the stop is recorded is a part of it.
   */
  #probeEndOf(entry: SimEntry): number {
    const { livenessProbe, startupProbe } = this.#specOf(entry) ?? {};
    const code = entry.cause?.code ?? "";
    if (code !== "LastContainerUnhealthy") return Number.POSITIVE_INFINITY;
    const own = [livenessProbe, startupProbe].map((probe) => probe?.terminationGracePeriodSeconds ?? Infinity);
    const toldMs = this.#killing.get(idOf(entry))?.get(code) ?? entry.atMs;
    const sinceMs = Math.min(toldMs, this.#starts.get(entry.pod?.uid ?? "") ?? toldMs);
    return sinceMs + Math.min(...own) * 1000;
  }

  /** podwright's own report, unless it was notified since that the pod must end sooner. */
  #endOf(uid: string): number | undefined {
    const { node, unwanted } = this.#scene;
    const endMs = this.#ends.get(uid);
    const { graceSeconds, sinceMs = 0, reachedNode, life } = unwanted.get(uid) ?? {};
    if (endMs === undefined || graceSeconds === undefined || reachedNode !== true || life !== node.lives) return endMs;
    return Math.min(endMs, sinceMs + Math.max(1, graceSeconds) * 1000);
  }

  /** A probe may have its own grace period, part of which a hook may have used. */
  #judgeProbe(entry: SimEntry, seconds: number): void {
    const type = /^(Startup|Liveness)ProbeFailed$/.exec(entry.cause?.code ?? "")?.[1];
    const container = this.#specOf(entry);
    if (type === undefined || container === undefined || container.lifecycle?.preStop !== undefined) return;
    const probe = type === "Startup" ? container.startupProbe : container.livenessProbe;
    const ofPod = this.#scene.pods.get(entry.pod?.uid ?? "")?.spec.terminationGracePeriodSeconds ?? 0;
    const due = Math.max(leastSeconds, probe?.terminationGracePeriodSeconds ?? ofPod);
    if (seconds !== due) this.#broken("the probe's grace period", `${whereOf(entry)} gets ${seconds} s, not ${due}`);
  }

  /** However often its stop is requested. */
  #hooking(entry: SimEntry): void {
    const id = idOf(entry);
    if (this.#hooked.has(id)) this.#broken("preStop once", `the hook of ${whereOf(entry)} is begun again`);
    this.#hooked.add(id);
  }

  #judgeHook(entry: SimEntry, seconds: number): void {
    if (this.#specOf(entry)?.lifecycle?.preStop === undefined || seconds <= leastSeconds) return;
    const isForgotten = entry.cause?.code === "OrphanedPod" && !this.#isKept(entry.pod?.uid ?? "");
    // A container that restarts with its pod is stopped without hooks: if that came first, it is too late for them.
    if (this.#hooked.has(idOf(entry)) || this.#stopped.has(idOf(entry)) || isForgotten) return;
    this.#broken("preStop before SIGTERM", `${whereOf(entry)} is stopped without it`);
  }

  #specOf({ pod, container }: SimEntry): Container | undefined {
    return specContainers(this.#scene.pods, pod?.uid).find(({ name }) => name === container);
  }

  #isKept(uid: string): boolean {
    return isRecorded(this.#scene.node.files, uid);
  }
}
