/**
 * Random pods with a predictable end: whatever the machine's speed, their state after a minute is the same. So nothing
 * happens near that moment: containers exit at once, after three seconds or never. A loaded machine is later than the
 * simulator and never earlier, so moments are chosen shortly before the next event.
 */
import { podUid } from "../../src/base/ids.ts";
import type { Container } from "../../src/api/container.ts";
import type { Pod, PodManifest } from "../../src/api/pod.ts";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import { behaviourCommand, hookCommand, parseBehaviour, parseHook } from "../../src/sim/behaviour.ts";
import { healthCommand, healthPath, isSickAtTimes, parseHealth } from "../../src/sim/health.ts";
import type { SimRandom } from "../../src/sim/random.ts";
import { withDefaults } from "../../src/sources/defaults.ts";

/** The history of one pod name, in the simulator and on a real runtime. */
export interface PlannedPod {
  readonly first: Pod;
  /** What happens to it after `changeAfterMs`. */
  readonly change: "stays" | "goes" | { readonly replacedBy: Pod };
}

/** When pods are stopped or replaced, and when all are compared. */
export const changeAfterMs = 8_000;
export const lookAfterMs = 66_000;

const neverWell = { afterMs: 0, untilMs: 1, cycleMs: 1, manner: "errs" } as const;

export function drawPlannedPod(name: string, random: SimRandom): PlannedPod {
  const first = drawPod(name, `${name}-1`, random.fork());
  const second = drawPod(name, `${name}-2`, random.fork());
  return { first, change: random.pick(["stays", "stays", "goes", { replacedBy: second }]) };
}

function drawPod(name: string, uid: string, random: SimRandom): Pod {
  const restartPolicy = random.pick(["Always", "OnFailure", "Never"]);
  // The state of looping containers at the pod's end would vary.
  const deadline = random.chance(0.1) && { activeDeadlineSeconds: 28 };
  const mayLoop = deadline === false;
  const initContainers = random.chance(0.5)
    ? Array.from({ length: random.integer(1, 2) }, (_, index) =>
        drawInit(`i${index}`, random, mayLoop && restartPolicy === "Always"),
      )
    : [];
  const drawn = Array.from({ length: random.integer(1, 2) }, (_, index) =>
    drawContainer(`c${index}`, uid, random, mayLoop),
  );
  // If the pod may end, a sidecar's exit would race with its stop.
  const containers = initContainers.some(isEndingSidecar)
    ? drawn.map(({ restartPolicy: _policy, restartPolicyRules: _rules, ...container }) => container)
    : drawn;
  const terminationGracePeriodSeconds = random.integer(0, 3);
  const { metadata: _metadata, ...pod } = withDefaults({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: {
      restartPolicy,
      terminationGracePeriodSeconds,
      containers,
      ...(initContainers.length > 0 && { initContainers }),
      ...deadline,
    },
  });
  return { spec: pod.spec, metadata: { name, namespace: "default", uid: podUid(uid) } };
}

function drawInit(name: string, random: SimRandom, mayLoop: boolean): Container {
  const sidecar = random.chance(0.4);
  const ends = !sidecar || (random.chance(0.3) && mayLoop);
  const command = behaviourCommand({
    exitAfterMs: ends ? 200 : undefined,
    exitCode: random.pick([0, 0, 0, mayLoop ? 1 : 0]),
    deaf: false,
    unstartable: random.chance(0.05) && mayLoop,
  });
  const restart = sidecar && ({ restartPolicy: "Always" } as const);
  return { name, image: "busybox", imagePullPolicy: "IfNotPresent", command, ...restart };
}

function isEndingSidecar({ restartPolicy, command = [] }: Container): boolean {
  return restartPolicy === "Always" && parseBehaviour(command).exitAfterMs !== undefined;
}

function drawContainer(name: string, uid: string, random: SimRandom, mayLoop: boolean): Container {
  const exitAfterMs = random.pick([undefined, undefined, 200, 3000]);
  const command = behaviourCommand({
    exitAfterMs: mayLoop ? exitAfterMs : undefined,
    exitCode: random.pick([0, 1, 3]),
    // Its exit would race with SIGKILL.
    deaf: random.chance(0.4) && exitAfterMs === undefined,
    unstartable: random.chance(0.07) && mayLoop,
  });
  const [image, imagePullPolicy] = random.chance(0.8)
    ? (["busybox", "IfNotPresent"] as const)
    : random.pick([["absent:1", "Never"] as const, ["missing:1", "IfNotPresent"] as const]);
  const env = [{ name: "X", valueFrom: { configMapKeyRef: { name: "nope", key: "x" } } }];
  const health = (sick: boolean): string[] =>
    healthCommand(healthPath(uid, name, "readiness", sick ? neverWell : undefined));
  const readiness = random.chance(0.3) && {
    readinessProbe: { exec: { command: health(random.chance(0.4)) }, periodSeconds: 1 },
  };
  // Its exit would race with the probe, which a busy machine begins late.
  const liveness = mayLoop &&
    exitAfterMs !== 3000 &&
    random.chance(0.1) && {
      livenessProbe: { exec: { command: health(true) }, periodSeconds: 1, failureThreshold: 2 },
    };
  return {
    name,
    image,
    imagePullPolicy,
    command,
    ...(random.chance(0.07) && { env }),
    ...readiness,
    ...liveness,
    ...drawRules(random),
    ...drawHooks(random, mayLoop),
  };
}

function drawRules(random: SimRandom): Partial<Container> {
  if (!random.chance(0.2)) return {};
  const restartPolicy = random.pick(["Always", "OnFailure", "Never"]);
  const rule = { action: "Restart", exitCodes: { operator: "In", values: [3] } };
  return random.chance(0.5) ? { restartPolicy } : { restartPolicy, restartPolicyRules: [{ ...rule }] };
}

function drawHooks(random: SimRandom, mayFail: boolean): Partial<Container> {
  const exec = (kind: "postStart" | "preStop") => {
    return {
      exec: { command: hookCommand({ kind, exitCode: random.pick([0, 0, mayFail ? 1 : 0]), durationMs: 300 }) },
    };
  };
  const postStart = random.chance(0.15) && { postStart: exec("postStart") };
  const preStop = random.chance(0.3) && { preStop: exec("preStop") };
  return { lifecycle: { ...postStart, ...preStop } };
}

/** The same pod for a real runtime: with real commands and images. */
export function realManifest(pod: Pod): PodManifest {
  const real = (container: Container): Container => ({
    ...container,
    image: container.image === "busybox" ? DEMO_IMAGE : `127.0.0.1:1/${container.image ?? ""}`,
    command: realCommand(container.command ?? []),
    ...(container.readinessProbe && { readinessProbe: realHandler(container.readinessProbe) }),
    ...(container.livenessProbe && { livenessProbe: realHandler(container.livenessProbe) }),
    ...(container.lifecycle && { lifecycle: realHooks(container.lifecycle) }),
  });
  const { containers, initContainers } = pod.spec;
  const spec = {
    ...pod.spec,
    containers: containers.map(real),
    ...(initContainers && { initContainers: initContainers.map(real) }),
  };
  return { apiVersion: "v1", kind: "Pod", metadata: { name: pod.metadata.name, namespace: "default" }, spec };
}

function realHooks({ postStart, preStop }: NonNullable<Container["lifecycle"]>): NonNullable<Container["lifecycle"]> {
  return { ...(postStart && { postStart: realHandler(postStart) }), ...(preStop && { preStop: realHandler(preStop) }) };
}

function realHandler<T extends { readonly exec?: { command?: string[] | undefined } | undefined }>(handler: T): T {
  return { ...handler, exec: { command: realCommand(handler.exec?.command ?? []) } };
}

/** The real command for a simulated one. */
function realCommand(command: readonly string[]): string[] {
  const hook = parseHook(command);
  if (hook !== undefined) return shell(`sleep ${hook.durationMs / 1000}; exit ${hook.exitCode}`);
  if (command[1] === "health") {
    const health = parseHealth(command[2] ?? "");
    return [health !== undefined && isSickAtTimes(health) ? "/bin/false" : "/bin/true"];
  }
  const { exitAfterMs, exitCode, deaf, unstartable } = parseBehaviour(command);
  if (unstartable) return ["/no/such/program"];
  const trap = deaf ? "trap '' TERM" : "trap 'exit 143' TERM";
  if (exitAfterMs === undefined) return shell(`${trap}; while true; do sleep 1000 & wait $!; done`);
  return shell(`${trap}; sleep ${exitAfterMs / 1000} & wait $!; exit ${exitCode}`);
}

function shell(script: string): string[] {
  return ["/bin/sh", "-c", script];
}
