import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import type { KnownPod } from "../kubelet.ts";
import { type Probe, probeOf, type ProbeType, probeTimes } from "../prober/probe-spec.ts";
import { healthPath, type Sickness, type SimProbe } from "./network-probes.ts";
import type { SimEntry } from "./node.ts";
import type { SimRandom } from "./random.ts";

/** A stop that is asked for at the same moment as the probe that caused it. */
const sameMomentMs = 1;
/** A container that has run for so long without being sick is to be ready, whatever its probes' times. */
const settledMs = 4 * 60_000;

/** Gives some of a pod's regular containers probes, some of them of servers that are sick now and then. */
export function withProbes(pod: Pod, random: SimRandom): Pod {
  const { uid } = pod.metadata;
  const drawProbe = (name: string, type: ProbeType, sickness: Sickness | undefined): Probe => ({
    httpGet: { path: healthPath(uid, name, type, sickness), port: 80 },
    initialDelaySeconds: random.integer(0, 10),
    periodSeconds: random.integer(5, 30),
    timeoutSeconds: random.integer(1, 5),
    successThreshold: type === "readiness" ? random.integer(1, 3) : 1,
    failureThreshold: random.integer(1, 4),
    ...(type === "liveness" && random.chance(0.3) && { terminationGracePeriodSeconds: random.integer(1, 20) }),
  });
  const drawSickness = (): Sickness => {
    const afterMs = random.integer(0, 200_000);
    const untilMs = afterMs + random.integer(1000, 120_000);
    return {
      afterMs,
      untilMs,
      cycleMs: untilMs + random.integer(0, 200_000),
      manner: random.pick(["hangs", "errs", "refuses"]),
    };
  };
  const probed = (container: Container): Container => {
    const probe = (type: ProbeType, likely: number): Probe | undefined =>
      random.chance(likely)
        ? drawProbe(container.name, type, random.chance(0.4) ? drawSickness() : undefined)
        : undefined;
    const [startupProbe, livenessProbe, readinessProbe] = [
      probe("startup", 0.1),
      probe("liveness", 0.2),
      probe("readiness", 0.2),
    ];
    return {
      ...container,
      ...(startupProbe && { startupProbe }),
      ...(livenessProbe && { livenessProbe }),
      ...(readinessProbe && { readinessProbe }),
    };
  };
  return { ...pod, spec: { ...pod.spec, containers: pod.spec.containers.map(probed) } };
}

/** True when a probe may get the container killed, now and then. */
export function mayBeKilled(container: Container): boolean {
  return [container.livenessProbe, container.startupProbe].some((probe) => probe !== undefined && isSickAtTimes(probe));
}

/** Which rules of probing were broken, by what was sent and what the node wrote down. */
export function probeProblems(
  history: readonly SimProbe[],
  entries: readonly SimEntry[],
  wanted: ReadonlyMap<string, Pod>,
): string[] {
  const byId = Map.groupBy(history, ({ id }) => id);
  const problems: string[] = [];
  let life = 0;
  for (const entry of entries) {
    if (entry.what === "PodwrightStarted") life++;
    const container = wanted.get(entry.pod?.uid ?? "")?.spec.containers.find(({ name }) => name === entry.container);
    if (container === undefined) continue;
    const sent = byId.get(idOf(entry)) ?? [];
    const where = `${entry.pod?.uid}/${container.name} at ${entry.atMs} ms`;
    if (entry.kind === "action" && entry.what === "StopContainer") {
      const problem = killProblem(
        entry,
        container,
        sent.filter((probe) => probe.life === life),
      );
      if (problem !== undefined) problems.push(`${where}: ${problem}`);
    }
    if (entry.what === "ContainerStateChanged" && entry.data?.["ready"] === true && container.readinessProbe) {
      if (!wasReady(container.readinessProbe, sent, entry.atMs)) problems.push(`${where}: ready without success`);
    }
  }
  for (const [id, sent] of byId) problems.push(...orderProblems(id, sent, containerOf(id, entries, wanted)));
  return problems;
}

/** Nothing is killed for less than as many failures in a row as the threshold says, of one life. */
function killProblem(entry: SimEntry, container: Container, sent: readonly SimProbe[]): string | undefined {
  const type = /^(Startup|Liveness)ProbeFailed$/.exec(entry.cause?.code ?? "")?.[1]?.toLowerCase();
  if (type !== "startup" && type !== "liveness") return undefined;
  const probe = probeOf(container, type);
  if (probe === undefined) return `killed for a ${type} probe that it has not`;
  const { failureThreshold } = probeTimes(probe);
  const last = sent.filter((other) => other.type === type && other.atMs <= entry.atMs).slice(-failureThreshold);
  if (last.length === failureThreshold && last.every(({ ok }) => !ok)) return undefined;
  return `killed for ${type} after ${last.map(({ ok }) => (ok ? "success" : "failure")).join(", ")}`;
}

function wasReady(probe: Probe, sent: readonly SimProbe[], atMs: number): boolean {
  const { successThreshold } = probeTimes(probe);
  const outcomes = sent.filter(({ type, atMs: sentMs }) => type === "readiness" && sentMs <= atMs + sameMomentMs);
  let row = 0;
  for (const { ok } of outcomes) {
    row = ok ? row + 1 : 0;
    if (row >= successThreshold) return true;
  }
  return false;
}

/** Nothing but the start is probed before it was seen, and nothing more often than its period. */
function orderProblems(id: string, sent: readonly SimProbe[], container: Container | undefined): string[] {
  if (container === undefined) return [];
  const problems: string[] = [];
  let started = container.startupProbe === undefined;
  const last = new Map<ProbeType, SimProbe>();
  for (const probe of sent) {
    if (probe.type === "startup" && probe.ok) started = true;
    if (!started && probe.type !== "startup") problems.push(`${id}: ${probe.type} was probed before it had started`);
    const before = last.get(probe.type);
    last.set(probe.type, probe);
    const spec = probeOf(container, probe.type);
    if (before === undefined || spec === undefined || before.life !== probe.life) continue;
    const gapMs = probe.atMs - before.atMs;
    if (gapMs < probeTimes(spec).periodMs - sameMomentMs) problems.push(`${id}: ${probe.type} again after ${gapMs} ms`);
  }
  return problems;
}

/** What is not ready although it has been well for long. */
export function readinessDisagreements(pods: readonly KnownPod[], nowMs: number): string[] {
  return pods.flatMap(({ view, status }) => {
    if (view.state.kind !== "syncing" || view.pod === undefined) return [];
    return view.pod.spec.containers.flatMap((container) => {
      const { state, ready } = status?.containerStatuses?.find(({ name }) => name === container.name) ?? {};
      const sinceMs = Date.parse(state?.running?.startedAt ?? "");
      const probes = [container.startupProbe, container.readinessProbe].filter((probe) => probe !== undefined);
      const well = !probes.some(isSickAtTimes);
      return well && nowMs - sinceMs > settledMs && ready !== true
        ? [`${view.ref.uid}/${container.name} is not ready`]
        : [];
    });
  });
}

function isSickAtTimes(probe: Probe): boolean {
  const [, , , , , afterMs, untilMs] = (probe.httpGet?.path ?? "").split("/");
  return Number(untilMs) > Number(afterMs);
}

/** The runtime's id of the container that an entry is about. */
function idOf({ data }: SimEntry): string {
  const id = data?.["id"] ?? data?.["containerID"] ?? "";
  return typeof id === "string" ? id.replace(/^.*:\/\//, "") : "";
}

function containerOf(
  id: string,
  entries: readonly SimEntry[],
  wanted: ReadonlyMap<string, Pod>,
): Container | undefined {
  const entry = entries.find((other) => other.container !== undefined && idOf(other) === id);
  return wanted.get(entry?.pod?.uid ?? "")?.spec.containers.find(({ name }) => name === entry?.container);
}
