import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import type { Probe, ProbeType } from "../../prober/probe-spec.ts";
import { healthCommand, healthPath, isSickAtTimes, parseHealth, type Sickness } from "../health.ts";
import type { SimRandom } from "../random.ts";

/** Adds probes to some of a pod's containers, some of them of servers that are periodically unhealthy. */
export function withProbes(pod: Pod, random: SimRandom, always: boolean): Pod {
  const { uid } = pod.metadata;
  const drawProbe = (name: string, type: ProbeType): Probe => ({
    ...drawTarget(healthPath(uid, name, type, random.chance(0.4) ? drawSickness(random) : undefined), type, random),
    initialDelaySeconds: random.integer(0, 10),
    periodSeconds: random.integer(5, 30),
    timeoutSeconds: random.integer(1, 5),
    successThreshold: type === "readiness" ? random.integer(1, 3) : 1,
    failureThreshold: random.integer(1, 4),
    ...(type === "liveness" &&
      random.chance(always ? 0.7 : 0.3) && { terminationGracePeriodSeconds: random.integer(1, 20) }),
  });
  const probed = (container: Container): Container => {
    const probe = (type: ProbeType, likely: number): Probe | undefined =>
      random.chance(always ? 3 * likely : likely) ? drawProbe(container.name, type) : undefined;
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
  const { initContainers, containers } = pod.spec;
  const spec = { ...pod.spec, containers: containers.map(probed) };
  const init = initContainers?.map((each) => (each.restartPolicy === "Always" ? probed(each) : each));
  return { ...pod, spec: init === undefined ? spec : { ...spec, initContainers: init } };
}

function drawTarget(path: string, type: ProbeType, random: SimRandom): Probe {
  const draw = random.uniform();
  if (draw < 0.5) return { httpGet: { path, port: 80 } };
  if (draw < 0.75) return { exec: { command: healthCommand(path) } };
  if (draw < 0.9) return { grpc: { port: 80, service: path } };
  // A TCP server's response depends only on its container.
  return type === "readiness" ? { tcpSocket: { port: 80 } } : { httpGet: { path, port: 80 } };
}

function drawSickness(random: SimRandom): Sickness {
  const afterMs = random.integer(0, 200_000);
  const untilMs = afterMs + random.integer(1000, 120_000);
  return {
    afterMs,
    untilMs,
    cycleMs: untilMs + random.integer(0, 200_000),
    manner: random.pick(["hangs", "errs", "refuses"]),
  };
}

/** The pod without probes of periodically unhealthy servers. */
export function withoutSickness(pod: Pod): Pod {
  const well = ({ startupProbe, livenessProbe, readinessProbe, ...container }: Container): Container => ({
    ...container,
    ...(startupProbe && !mayFail(startupProbe) && { startupProbe }),
    ...(livenessProbe && !mayFail(livenessProbe) && { livenessProbe }),
    ...(readinessProbe && !mayFail(readinessProbe) && { readinessProbe }),
  });
  const { initContainers, containers } = pod.spec;
  const init = initContainers && { initContainers: initContainers.map(well) };
  return { ...pod, spec: { ...pod.spec, ...init, containers: containers.map(well) } };
}

/** True when a probe may get the container killed, periodically. */
export function mayBeKilled({ livenessProbe, startupProbe }: Container): boolean {
  return [livenessProbe, startupProbe].some((probe) => probe !== undefined && mayFail(probe));
}

/** True when a probe may make the container unready, or get it killed, periodically. */
export function mayTurnUnready(container: Container): boolean {
  const { readinessProbe } = container;
  return mayBeKilled(container) || (readinessProbe !== undefined && mayFail(readinessProbe));
}

/** True when the probe's target is periodically unhealthy. */
export function mayFail({ httpGet, grpc, exec }: Probe): boolean {
  const health = parseHealth(httpGet?.path ?? grpc?.service ?? exec?.command?.[2] ?? "");
  return health !== undefined && isSickAtTimes(health);
}
