import type { Container } from "../../api/container.ts";
import { type Probe, probeOf, type ProbeType, probeTimes } from "../../prober/probe-spec.ts";
import type { SimEntry } from "../life/node.ts";
import { mayFail } from "../life/pod-probes.ts";
import { nameOf, type WorldChange } from "../world-model.ts";
import { idOf, whereOf } from "./entry-data.ts";
import { type Break, isUnseen, type Rule, type Scene } from "./rule.ts";
import { specContainers } from "./spec-containers.ts";

/** A probe that was sent to a container, and its result. */
interface Sent {
  readonly type: ProbeType;
  readonly ok: boolean;
  readonly atMs: number;
  /** The run that sent it. */
  readonly life: number;
  /** False: sent to an earlier instance, whose end podwright could not see yet, at the same address. */
  readonly isMeant: boolean;
}

/** The pod's worker may read the runtime's report a moment later. */
const lookMs = 500;
/** The same while the disk is slow or fails: a step of the worker in progress waits for it. */
const slowLookMs = 10_000;
/** A stop at the same moment as the probe that caused it. */
const sameMomentMs = 1;
/** A container that has been healthy for this long must be ready, whatever its probes' times. */
const settledMs = 4 * 60_000;
const patienceMs = 10_000;

/** Which containers are probed, how often, and the consequences. */
export class ProbeRules implements Rule {
  readonly #scene: Scene;
  readonly #broken: Break;
  /** By container id, oldest first. */
  readonly #history = new Map<string, Sent[]>();
  /** Instances that are being stopped: they are no longer probed. */
  readonly #stopping = new Set<string>();
  /**
   * When podwright learned of instances, in simulated ms: until their pod's worker has seen that, the previous one is
   * probed, at their common address.
   */
  readonly #toldMs = new Map<string, number>();
  /** Instances whose startup probe has succeeded. */
  readonly #started = new Set<string>();

  constructor(scene: Scene, broken: Break) {
    this.#scene = scene;
    this.#broken = broken;
  }

  change({ type, podUid: uid, container, probe }: WorldChange): void {
    if (type !== "probed" || container === undefined || probe === undefined) return;
    const spec = this.#containerOf(uid, nameOf(container));
    const { clock, node } = this.#scene;
    if (spec === undefined || !this.#toldMs.has(container.id)) return;
    const isMeant = node
      .pods()
      .some(({ view }) => view.ref.uid === uid && view.status.containers.some(({ id }) => id === container.id));
    this.#sent(uid, container.id, spec, { ...probe, atMs: clock.nowMs, life: node.lives, isMeant });
  }

  entry(entry: SimEntry): void {
    if (entry.what === "ContainerStarted") this.#toldMs.set(idOf(entry), entry.atMs);
    const container = this.#containerOf(entry.pod?.uid ?? "", entry.container);
    if (container === undefined) return;
    if (entry.kind === "action" && (entry.what === "StopContainer" || entry.what === "PreStopHook")) {
      this.#stopping.add(idOf(entry));
    }
    if (entry.kind === "action" && entry.what === "StopContainer") this.#killed(entry, container);
    if (entry.what === "ContainerStateChanged" && entry.data?.["ready"] === true) this.#ready(entry, container);
  }

  disagreements(): string[] {
    return [...this.#notReady(), ...this.#notProbed()];
  }

  #containerOf(uid: string, name: string | undefined): Container | undefined {
    return specContainers(this.#scene.pods, uid).find((container) => container.name === name);
  }

  /** Only the startup probe is sent before it has succeeded, and none more often than its period. */
  #sent(uid: string, id: string, container: Container, probe: Sent): void {
    const all = this.#history.get(id) ?? [];
    this.#history.set(id, all);
    const spec = probeOf(container, probe.type);
    if (spec === undefined) return this.#broken("probes as specified", `${id}: probed for ${probe.type}`);
    const needsStart = probe.type !== "startup" && container.startupProbe !== undefined && !isUnseen(this.#scene, uid);
    if (needsStart && !this.#started.has(id)) {
      if (spec.exec === undefined && this.#isUnlooked(id)) return;
      this.#broken("startup first", `${id}: ${probe.type} was probed before it had started`);
    }
    if (probe.type === "startup" && probe.ok) this.#started.add(id);
    const before = all.findLast(({ type }) => type === probe.type);
    all.push(probe);
    if (before === undefined || before.life !== probe.life || !before.isMeant) return;
    // An exec probe's call takes time.
    if (spec.exec !== undefined) return;
    const gapMs = probe.atMs - before.atMs;
    if (gapMs < probeTimes(spec).periodMs - sameMomentMs) {
      this.#broken("probe period", `${id}: ${probe.type} again after ${gapMs} ms`);
    }
  }

  /** The pod's worker may not have seen this instance yet. */
  #isUnlooked(id: string): boolean {
    const { clock, node } = this.#scene;
    const withinMs = node.diskFaultMs > clock.nowMs ? slowLookMs : lookMs * node.slowness;
    return clock.nowMs <= (this.#toldMs.get(id) ?? 0) + withinMs;
  }

  /** Killing requires as many consecutive failures as the threshold, in one run. */
  #killed(entry: SimEntry, container: Container): void {
    const type = /^(Startup|Liveness)ProbeFailed$/.exec(entry.cause?.code ?? "")?.[1]?.toLowerCase();
    if (type !== "startup" && type !== "liveness") return;
    const probe = probeOf(container, type);
    if (probe === undefined) return this.#broken("failure threshold", `${whereOf(entry)}: killed for no probe of its`);
    // A command that could not be run has failed, without the container's knowledge.
    if (probe.exec !== undefined || probe.tcpSocket !== undefined) return;
    const { failureThreshold } = probeTimes(probe);
    const { lives } = this.#scene.node;
    const own = (this.#history.get(idOf(entry)) ?? []).filter((other) => other.type === type && other.life === lives);
    const last = own.slice(-failureThreshold);
    if (last.length === failureThreshold && last.every(({ ok }) => !ok)) return;
    const outcomes = last.map(({ ok }) => (ok ? "success" : "failure")).join(", ");
    this.#broken("failure threshold", `${whereOf(entry)}: killed for ${type} after ${outcomes || "no probe"}`);
  }

  /** Readiness requires as many consecutive successes as the threshold. */
  #ready(entry: SimEntry, { readinessProbe: probe }: Container): void {
    // The result of a call with a reported failure does not count.
    if (probe === undefined || probe.tcpSocket !== undefined || probe.exec !== undefined) return;
    const { successThreshold } = probeTimes(probe);
    let row = 0;
    for (const { type, ok } of this.#history.get(idOf(entry)) ?? []) {
      if (type !== "readiness") continue;
      row = ok ? row + 1 : 0;
      if (row >= successThreshold) return;
    }
    this.#broken("success threshold", `${whereOf(entry)}: ready after ${row} successes of ${successThreshold}`);
  }

  /** Containers that are not ready although they have been healthy for long. */
  #notReady(): string[] {
    const { clock, node } = this.#scene;
    return node.pods().flatMap(({ view, status }) => {
      if (view.state.kind !== "syncing" || view.pod === undefined) return [];
      return view.pod.spec.containers.flatMap(({ name, startupProbe, readinessProbe }) => {
        const { state, ready } = status?.containerStatuses?.find((own) => own.name === name) ?? {};
        const sinceMs = Date.parse(state?.running?.startedAt ?? "");
        const given = [startupProbe, readinessProbe].filter((probe) => probe !== undefined);
        const isWell = !given.some(mayFail) && clock.wallMs - sinceMs > settledMs;
        return isWell && ready !== true ? [`${view.ref.uid}/${name} is not ready`] : [];
      });
    });
  }

  /** Probes that stopped although their container runs. */
  #notProbed(): string[] {
    const { clock, node } = this.#scene;
    return node.pods().flatMap(({ view }) => {
      if (view.state.kind !== "syncing" || view.pod === undefined) return [];
      return view.status.containers.flatMap(({ id, name, state }) => {
        const container = this.#containerOf(view.ref.uid, name);
        const probe: Probe | undefined = container?.livenessProbe;
        if (state !== "running" || probe === undefined || probe.tcpSocket !== undefined) return [];
        if (this.#stopping.has(id)) return [];
        // A container that has not started gets no other probe.
        if (container?.startupProbe !== undefined && mayFail(container.startupProbe)) return [];
        const last = this.#history.get(id)?.findLast(({ type }) => type === "liveness");
        const { periodMs, timeoutMs, initialDelayMs } = probeTimes(probe);
        const silentMs = last === undefined ? 0 : clock.nowMs - last.atMs;
        const mostMs = 2 * periodMs + timeoutMs + initialDelayMs + patienceMs;
        return silentMs > mostMs ? [`${view.ref.uid}/${name} was not probed for ${silentMs} ms`] : [];
      });
    });
  }
}
