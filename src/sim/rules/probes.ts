import type { Container } from "../../api/container.ts";
import { lifeStarted } from "../../journal/entry.ts";
import { mayFail } from "../life/pod-probes.ts";
import type { SimEntry } from "../life/node.ts";
import { type Probe, probeOf, type ProbeType, probeTimes } from "../../prober/probe-spec.ts";
import { nameOf } from "../world-model.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/** One probe that was sent to a container, and what it was told. */
interface Sent {
  readonly type: ProbeType;
  readonly ok: boolean;
  readonly atMs: number;
  /** The node's life that sent it. */
  readonly life: number;
}

/** A stop that is asked for at the same moment as the probe that caused it. */
const sameMomentMs = 1;
/** An exec probe has to reach the container first. */
const execMs = 50;
/** A container that has run for so long without being sick is to be ready, whatever its probes' times. */
const settledMs = 4 * 60_000;

/** Who is probed, how often, and what follows (census of the prober). */
export const probes: RuleMaker = ({ clock, node, pods }, broken): Rule => {
  const history = new Map<string, Sent[]>();
  /** Instances whose startup probe has succeeded. */
  const started = new Set<string>();

  const containerOf = (uid: string, name: string | undefined): Container | undefined => {
    const spec = pods.get(uid)?.spec;
    return [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].find((container) => container.name === name);
  };

  /** Nothing but the start is probed before it was seen, and nothing more often than its period. */
  function sent(id: string, container: Container, probe: Sent): void {
    const all = history.get(id) ?? [];
    history.set(id, all);
    const spec = probeOf(container, probe.type);
    if (spec === undefined) return broken("probes as specified", `${id}: probed for ${probe.type}, which it has not`);
    if (probe.type !== "startup" && container.startupProbe !== undefined && !started.has(id)) {
      broken("startup first", `${id}: ${probe.type} was probed before it had started`);
    }
    if (probe.type === "startup" && probe.ok) started.add(id);
    const before = all.findLast(({ type }) => type === probe.type);
    all.push(probe);
    // An exec probe may be sent by a call that takes its time.
    if (before === undefined || before.life !== probe.life || spec.exec !== undefined) return;
    const gapMs = probe.atMs - before.atMs;
    if (gapMs < probeTimes(spec).periodMs - sameMomentMs) {
      broken("probe period", `${id}: ${probe.type} again after ${gapMs} ms`);
    }
  }

  /** Nothing is killed for less than as many failures in a row as the threshold says, of one life. */
  function killed(entry: SimEntry, container: Container): void {
    const type = /^(Startup|Liveness)ProbeFailed$/.exec(entry.cause?.code ?? "")?.[1]?.toLowerCase();
    if (type !== "startup" && type !== "liveness") return;
    const probe = probeOf(container, type);
    if (probe === undefined) return broken("failure threshold", `${where(entry)}: killed for a probe that it has not`);
    // A command that could not be asked for has failed, and the container knows nothing of it.
    if (probe.exec !== undefined || probe.tcpSocket !== undefined) return;
    const { failureThreshold } = probeTimes(probe);
    const own = (history.get(idOf(entry)) ?? []).filter((other) => other.type === type && other.life === node.lives);
    const last = own.slice(-failureThreshold);
    if (last.length === failureThreshold && last.every(({ ok }) => !ok)) return;
    const outcomes = last.map(({ ok }) => (ok ? "success" : "failure")).join(", ");
    broken("failure threshold", `${where(entry)}: killed for ${type} after ${outcomes || "no probe"}`);
  }

  /** Nothing is ready without as many successes in a row as the threshold says. */
  function ready(entry: SimEntry, container: Container): void {
    const probe = container.readinessProbe;
    if (probe === undefined || probe.tcpSocket !== undefined) return;
    const { successThreshold } = probeTimes(probe);
    let row = 0;
    for (const { type, ok } of history.get(idOf(entry)) ?? []) {
      if (type !== "readiness") continue;
      row = ok ? row + 1 : 0;
      if (row >= successThreshold) return;
    }
    broken("success threshold", `${where(entry)}: ready after ${row} successes of ${successThreshold}`);
  }

  return {
    change: ({ type, podUid: uid, container, probe }) => {
      if (type !== "probed" || container === undefined || probe === undefined) return;
      const spec = containerOf(uid, nameOf(container));
      if (spec !== undefined) sent(container.id, spec, { ...probe, atMs: clock.nowMs, life: node.lives });
    },
    entry: (entry) => {
      if (entry.what === lifeStarted) return;
      const container = containerOf(entry.pod?.uid ?? "", entry.container);
      if (container === undefined) return;
      if (entry.kind === "action" && entry.what === "StopContainer") killed(entry, container);
      if (entry.what === "ContainerStateChanged" && entry.data?.["ready"] === true) ready(entry, container);
    },
    disagreements: () => [...notReady(), ...notProbed()],
  };

  /** What is not ready although it has been well for long. */
  function notReady(): string[] {
    return node.pods().flatMap(({ view, status }) => {
      if (view.state.kind !== "syncing" || view.pod === undefined) return [];
      return view.pod.spec.containers.flatMap(({ name, startupProbe, readinessProbe }) => {
        const { state, ready: isReady } = status?.containerStatuses?.find((own) => own.name === name) ?? {};
        const sinceMs = Date.parse(state?.running?.startedAt ?? "");
        const given = [startupProbe, readinessProbe].filter((probe) => probe !== undefined);
        const isWell = !given.some(mayFail) && clock.wallMs - sinceMs > settledMs;
        return isWell && isReady !== true ? [`${view.ref.uid}/${name} is not ready`] : [];
      });
    });
  }

  /** Probes that stopped coming although their container runs on. */
  function notProbed(): string[] {
    return node.pods().flatMap(({ view }) => {
      if (view.state.kind !== "syncing" || view.pod === undefined) return [];
      return view.status.containers.flatMap(({ id, name, state }) => {
        const container = containerOf(view.ref.uid, name);
        const probe: Probe | undefined = container?.livenessProbe;
        if (state !== "running" || probe === undefined || probe.tcpSocket !== undefined) return [];
        if (container?.startupProbe !== undefined && mayFail(container.startupProbe)) return [];
        const last = history.get(id)?.findLast(({ type }) => type === "liveness");
        const { periodMs, timeoutMs, initialDelayMs } = probeTimes(probe);
        const silentMs = clock.nowMs - (last?.atMs ?? Number.POSITIVE_INFINITY);
        const mostMs = 2 * periodMs + timeoutMs + initialDelayMs + execMs + 10_000;
        return silentMs > mostMs ? [`${view.ref.uid}/${name} was not probed for ${silentMs} ms`] : [];
      });
    });
  }
};

function where(entry: SimEntry): string {
  return `${entry.pod?.uid}/${entry.container}`;
}

/** The runtime's id of the container that an entry is about. */
export function idOf({ data }: SimEntry): string {
  const id = data?.["id"] ?? data?.["containerID"] ?? "";
  return typeof id === "string" ? id.replace(/^.*:\/\//, "") : "";
}
