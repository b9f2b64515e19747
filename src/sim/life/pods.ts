import { podUid } from "../../base/ids.ts";
import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import { withDefaults } from "../../sources/defaults.ts";
import { behaviourCommand, hookCommand } from "../behaviour.ts";
import { SimRandom } from "../random.ts";
import { withClaims, withExport } from "./pod-claims.ts";
import { withDeviceVolumes, withDriverVolumes, withGroup, withSELinux } from "./pod-driver-volumes.ts";
import { withManners } from "./pod-manners.ts";
import { withPriority } from "./pod-priority.ts";
import { withoutSickness, withProbes } from "./pod-probes.ts";
import { withResources } from "./pod-resources.ts";
import { withImageVolumes, withVolumes } from "./pod-volumes.ts";
import { isUnderPressure } from "./pressure-steps.ts";
import { growsVolumes, hasDevices, hasDrivers, hasImageVolumes, hasMachineRooms, hasSELinux } from "./subjects.ts";

type Handler = NonNullable<NonNullable<Container["lifecycle"]>["preStop"]>;

/** Optional features of pods, drawn independently, so that leaving one out changes nothing else. */
const features: Readonly<Record<string, (pod: Pod, random: SimRandom, always: boolean) => Pod>> = {
  init: withInitContainers,
  hooks: withHooks,
  volumes: withVolumes,
  probes: withProbes,
  deadline: (pod, random, always) =>
    random.chance(always ? 0.4 : 0.1) ? withSpec(pod, { activeDeadlineSeconds: random.integer(1, 200) }) : pod,
  hostNetwork: (pod, random) => (random.chance(0.1) ? withSpec(pod, { hostNetwork: true }) : pod),
  hostUsers: (pod, random, always) =>
    random.chance(always ? 0.9 : 0.2) && pod.spec.hostNetwork !== true ? withSpec(pod, { hostUsers: false }) : pod,
  hostPorts: withHostPorts,
  rules: withRestartRules,
  environment: withEnvironment,
  resources: withResources,
  health: (pod, _random, always) => (always ? withoutSickness(pod) : pod),
};

/** Features added later, drawn by the life's seed and the pod's UID, so that older lives stay the same. */
const laterFeatures: Readonly<Record<string, (pod: Pod, random: SimRandom, wishes: PodWishes) => Pod>> = {
  protocols: withProtocols,
  claims: (pod, random, { always, seed }) => withClaims(pod, random, seed, always.has("claims")),
  priority: (pod, random, { always, seed }) => withPriority(pod, random, seed, always.has("priority")),
  exports: (pod, random) => withExport(pod, random),
  driverVolumes: (pod, random, { seed }) => (hasDrivers(seed) ? withDriverVolumes(pod, random) : pod),
  deviceVolumes: (pod, random, { seed }) => (hasDevices(seed) ? withDeviceVolumes(pod, random) : pod),
  seLinux: (pod, random, { seed }) => (hasSELinux(seed) ? withSELinux(pod, random) : pod),
  groups: (pod, random, { seed }) => (growsVolumes(seed) && random.chance(0.3) ? withGroup(pod) : pod),
  imageVolumes: (pod, random, { seed }) => (hasImageVolumes(seed) ? withImageVolumes(pod, random) : pod),
  manners: (pod, random, wishes) => (mayBeCutShort(wishes) ? withManners(pod, random) : pod),
};

/** Names of the features, for callers that exclude some. */
export const podFeatures: readonly string[] = [...Object.keys(features), ...Object.keys(laterFeatures)];

/** Fixed choices, whatever the random numbers. */
export interface PodWishes {
  /** Excluded features. */
  readonly without: ReadonlySet<string>;
  /**
   * Features of each pod, and properties of all its containers: `lasting` ones do not exit and need no registry,
   * `crashing` ones exit soon, `enduring` ones after ten minutes, many `missing` ones have no image, `steady` ones run
   * and are healthy, `many` are three. Also: most pods are `static` if there is an API server, or `seldom restarted`.
   */
  readonly always: ReadonlySet<string>;
  /** Of the life. */
  readonly seed: number;
}

/** A random valid pod with defaults; determined by the random numbers. */
export function drawPod(name: string, uid: string, random: SimRandom, wishes: PodWishes): Pod {
  const { without, always, seed } = wishes;
  const own = random.fork();
  let pod: Pod = {
    metadata: { name, namespace: "default", uid: podUid(uid) },
    spec: {
      restartPolicy: drawPolicy(own, always),
      terminationGracePeriodSeconds: own.integer(0, 40),
      containers: Array.from({ length: always.has("many") ? 3 : own.integer(1, 3) }, (_, index) =>
        drawContainer(`c${index}`, own, always),
      ),
    },
  };
  for (const [feature, add] of Object.entries(features)) {
    const draws = random.fork();
    if (!without.has(feature)) pod = add(pod, draws, always.has(feature));
  }
  for (const [feature, add] of Object.entries(laterFeatures)) {
    if (!without.has(feature)) pod = add(pod, SimRandom.named(seed, `${feature} of ${uid}`), wishes);
  }
  const {
    apiVersion: _version,
    kind: _kind,
    status: _status,
    ...complete
  } = withDefaults({
    ...pod,
    apiVersion: "v1",
    kind: "Pod",
  });
  return {
    ...complete,
    metadata: { ...complete.metadata, name, namespace: "default", uid: podUid(uid), generation: 1 },
  };
}

/** In lives in which the node often ends pods itself: evicts them, shuts down, makes room for critical ones. */
function mayBeCutShort({ seed, always }: PodWishes): boolean {
  return isUnderPressure(seed) || hasMachineRooms(seed) || always.has("priority");
}

function drawPolicy(random: SimRandom, always: ReadonlySet<string>): "Always" | "OnFailure" | "Never" {
  if (always.has("always restarted")) return "Always";
  const often = always.has("seldom restarted") ? "Never" : "Always";
  return random.pick([often, often, "OnFailure", "Never"]);
}

function drawContainer(name: string, random: SimRandom, always: ReadonlySet<string>): Container {
  const isSteady = always.has("steady");
  const ends = random.chance(always.has("lasting") ? 0.1 : 0.5) && !isSteady;
  const soonMs = random.integer(0, 30_000);
  const afterMs = ends ? random.pick([0, soonMs, random.integer(0, 400_000)]) : undefined;
  const lateMs = always.has("enduring") ? random.integer(640_000, 900_000) : undefined;
  const command = behaviourCommand({
    exitAfterMs: always.has("enduring") ? lateMs : always.has("crashing") ? soonMs : afterMs,
    exitCode: random.pick([0, 0, 1, 3]),
    deaf: random.chance(0.2),
    unstartable: random.chance(0.05) && !isSteady,
    chatty: random.chance(0.1),
  });
  const needsNothing = isSteady || (always.has("lasting") && random.chance(0.8));
  const drawn = random.pick(["busybox", "busybox", "busybox", "busybox", "pulled:1", "large:1", "missing:1"]);
  const policy = random.pick(["IfNotPresent", "IfNotPresent", "Always", "Never"]);
  const isMissing = always.has("missing") && random.chance(0.5);
  const image = isMissing ? "missing:1" : needsNothing ? "busybox" : drawn;
  const imagePullPolicy = needsNothing ? "IfNotPresent" : policy;
  const messages = random.chance(0.2) && ({ terminationMessagePolicy: "FallbackToLogsOnError" } as const);
  return { name, image, command, imagePullPolicy, ...messages };
}

function withSpec(pod: Pod, spec: Partial<Pod["spec"]>): Pod {
  return { ...pod, spec: { ...pod.spec, ...spec } };
}

function withContainers(pod: Pod, change: (container: Container) => Container): Pod {
  return withSpec(pod, { containers: pod.spec.containers.map(change) });
}

function withInitContainers(pod: Pod, random: SimRandom, always: boolean): Pod {
  if (!random.chance(always ? 0.8 : 0.35)) return pod;
  const initContainers = Array.from({ length: random.integer(1, 3) }, (_, index): Container => {
    const sidecar = random.chance(always ? 0.9 : 0.4);
    const command = behaviourCommand({
      exitAfterMs: sidecar && random.chance(0.7) ? undefined : random.integer(0, 10_000),
      exitCode: random.pick([0, 0, 0, 0, 1]),
      deaf: random.chance(0.1),
      unstartable: false,
    });
    const restart = sidecar && ({ restartPolicy: "Always" } as const);
    return { name: `i${index}`, image: "busybox", imagePullPolicy: "IfNotPresent", command, ...restart };
  });
  return withSpec(pod, { initContainers });
}

function withHooks(pod: Pod, random: SimRandom, always: boolean): Pod {
  const exec = (kind: "postStart" | "preStop", mostMs: number): Handler => {
    const exitCode = random.pick([0, 0, 0, 1]);
    return { exec: { command: hookCommand({ kind, exitCode, durationMs: random.integer(0, mostMs) }) } };
  };
  const draw = (container: Container): Container => {
    const postStart = random.chance(0.2) ? exec("postStart", 5000) : undefined;
    const preStop = random.chance(always ? 0.8 : 0.4)
      ? random.pick([
          exec("preStop", 50_000),
          exec("preStop", 5000),
          sleepWithin(random.integer(1, 40), pod.spec.terminationGracePeriodSeconds ?? 0),
          { httpGet: { port: 80 } },
        ])
      : undefined;
    return { ...container, lifecycle: { ...(postStart && { postStart }), ...(preStop && { preStop }) } };
  };
  const { initContainers } = pod.spec;
  const hooked = withContainers(pod, draw);
  const withSidecars = initContainers?.map((init) => (init.restartPolicy === "Always" ? draw(init) : init));
  return withSidecars === undefined ? hooked : withSpec(hooked, { initContainers: withSidecars });
}

/** A sleep must be shorter than the grace period. */
function sleepWithin(seconds: number, graceSeconds: number): Handler {
  return graceSeconds < 1 ? { httpGet: { port: 80 } } : { sleep: { seconds: Math.min(seconds, graceSeconds - 1) } };
}

/** Few different ports, so that pods conflict. */
function withHostPorts(pod: Pod, random: SimRandom, always: boolean): Pod {
  if (!random.chance(always ? 0.6 : 0.15)) return pod;
  const containerPort = random.integer(8000, 8003);
  const ports = [{ containerPort, hostPort: containerPort }];
  const [first, ...others] = pod.spec.containers;
  return first === undefined ? pod : withSpec(pod, { containers: [{ ...first, ports }, ...others] });
}

/** The same port with another protocol does not conflict. */
function withProtocols(pod: Pod, random: SimRandom): Pod {
  const protocol = random.pick(["TCP", "TCP", "UDP"]);
  return withContainers(pod, (container) => {
    const { ports } = container;
    return ports === undefined ? container : { ...container, ports: ports.map((port) => ({ ...port, protocol })) };
  });
}

function withRestartRules(pod: Pod, random: SimRandom, always: boolean): Pod {
  if (!random.chance(always ? 0.6 : 0.15)) return pod;
  return withContainers(pod, (container) => {
    if (!random.chance(always ? 0.9 : 0.6)) return container;
    const action = random.pick(["Restart", always ? "RestartAllContainers" : "Restart", "RestartAllContainers"]);
    const rule = { action, exitCodes: { operator: "In", values: [3] } };
    const restartPolicy = random.pick(["Always", "OnFailure", "Never"]);
    return { ...container, restartPolicy, restartPolicyRules: [{ ...rule }] };
  });
}

/** Variables from ConfigMaps, one of which is created late or never. */
function withEnvironment(pod: Pod, random: SimRandom): Pod {
  return withContainers(pod, (container) => {
    if (!random.chance(0.2)) return container;
    const name = random.pick(["settings", "settings", "late"]);
    return { ...container, env: [{ name: "REVISION", valueFrom: { configMapKeyRef: { name, key: "revision" } } }] };
  });
}
