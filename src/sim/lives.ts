import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import { behaviourCommand, hookCommand, parseBehaviour, parseHook } from "./behaviour.ts";
import { SimClock } from "./clock.ts";
import { type CriFaults, noFaults } from "./cri.ts";
import { Invariants } from "./invariants.ts";
import { type SimEntry, SimNode } from "./node.ts";
import { mayBeKilled, probeProblems, readinessDisagreements, withProbes } from "./probe-rules.ts";
import { SimRandom } from "./random.ts";
import { RuntimeWorld, type SimContainer, type SimSandbox } from "./runtime-world.ts";
import { volumeDisagreements, withVolumes } from "./volume-rules.ts";

/** How one simulated life of a node and its pods ended. */
export interface LifeResult {
  readonly seed: number;
  /** Broken rules in the order in which they broke; empty when all went well. */
  readonly problems: readonly string[];
  readonly entries: readonly SimEntry[];
  readonly simulatedMs: number;
}

type Handler = NonNullable<NonNullable<Container["lifecycle"]>["preStop"]>;

/** After the last fault everything has to be as wanted within this: the longest back-off and a few looks. */
const settleMs = 20 * 60_000;

/**
 * One random life: pods come and go, the runtime loses events and fails calls, podwright is killed and started again;
 * then the faults end, and wanted and actual have to agree. Everything follows from the seed.
 */
export async function runLife(seed: number): Promise<LifeResult> {
  return await new Life(seed).run();
}

class Life {
  readonly #seed: number;
  readonly #random: SimRandom;
  readonly #clock = new SimClock(1_700_000_000_000);
  readonly #world: RuntimeWorld;
  readonly #node: SimNode;
  readonly #everWanted = new Map<string, Pod>();
  readonly #invariants: Invariants;
  /** Of its own, so that what volumes draw moves nothing else of a life. */
  readonly #volumeRandom: SimRandom;
  readonly #probeRandom: SimRandom;
  #nextPod = 0;

  constructor(seed: number) {
    this.#seed = seed;
    this.#random = new SimRandom(seed);
    this.#volumeRandom = new SimRandom(~seed);
    this.#probeRandom = new SimRandom(seed ^ 0x5555_5555);
    this.#world = new RuntimeWorld(this.#clock);
    this.#world.images.add("busybox");
    this.#node = new SimNode(this.#clock, this.#world, this.#random.fork(), this.#drawFaults());
    this.#invariants = new Invariants(this.#world, this.#everWanted, {
      tried: (uid, name) => this.#node.tried(uid, name),
      life: () => this.#node.lives,
    });
  }

  async run(): Promise<LifeResult> {
    this.#node.start();
    const steps = this.#random.integer(5, 25);
    for (let step = 0; step < steps; step++) {
      await this.#clock.run(this.#clock.nowMs + this.#random.integer(0, 20_000));
      this.#disturb();
      if (this.#volumeRandom.chance(0.3)) this.#node.changeObjects();
    }
    this.#node.setFaults({ ...noFaults, noEvents: this.#random.chance(0.3) });
    await this.#clock.run(this.#clock.nowMs + settleMs);
    const problems = [
      ...this.#invariants.broken.map(({ rule, detail, atMs }) => `${rule} (at ${atMs} ms): ${detail}`),
      ...probeProblems(this.#node.probes, this.#node.entries, this.#everWanted),
      ...readinessDisagreements(this.#node.pods(), this.#clock.wallMs),
      ...(await this.#disagreements()),
      ...(await volumeDisagreements(this.#node, this.#node.desired)),
    ];
    return { seed: this.#seed, problems, entries: this.#node.entries, simulatedMs: this.#clock.nowMs };
  }

  #drawFaults(): CriFaults {
    const quiet = this.#random.chance(0.3);
    const upTo = (most: number): number => (quiet ? 0 : this.#random.uniform() * most);
    return {
      failBefore: upTo(0.1),
      failAfter: upTo(0.1),
      eventLost: upTo(0.5),
      eventTwice: upTo(0.3),
      eventDelayMaxMs: this.#random.integer(1, 5000),
      noEvents: this.#random.chance(0.3),
    };
  }

  #disturb(): void {
    const draw = this.#random.uniform();
    if (draw < 0.4) this.#addPod();
    else if (draw < 0.55) this.#removePod(false);
    else if (draw < 0.65) this.#removePod(true);
    else if (draw < 0.8) this.#restartNode();
    else if (draw < 0.9) this.#killSomething();
    else if (draw < 0.95) this.#clock.jumpWall(this.#random.integer(-3_600_000, 3_600_000));
    else this.#node.setFaults(this.#drawFaults());
  }

  #addPod(name = `pod${this.#nextPod}`): void {
    const uid = `uid-${this.#nextPod++}`;
    const count = this.#random.integer(1, 3);
    const pod: Pod = {
      metadata: { name, namespace: "default", uid },
      spec: {
        restartPolicy: this.#random.pick(["Always", "OnFailure", "Never"]),
        terminationGracePeriodSeconds: this.#random.integer(0, 40),
        ...(this.#random.chance(0.1) && { activeDeadlineSeconds: this.#random.integer(1, 200) }),
        ...(this.#random.chance(0.3) && { initContainers: this.#drawInitContainers() }),
        containers: Array.from({ length: count }, (_, index) => this.#drawContainer(`c${index}`)),
      },
    };
    const complete = withProbes(withVolumes(pod, this.#volumeRandom), this.#probeRandom);
    this.#everWanted.set(uid, complete);
    this.#node.add(complete);
  }

  #drawContainer(name: string): Container {
    const image = this.#random.pick(["busybox", "busybox", "busybox", "pulled:1", "missing:1"]);
    const ends = this.#random.chance(0.5);
    const command = behaviourCommand({
      exitAfterMs: ends ? this.#random.integer(0, 30_000) : undefined,
      exitCode: this.#random.pick([0, 0, 1, 3]),
      deaf: this.#random.chance(0.2),
      unstartable: this.#random.chance(0.05),
    });
    return { name, image, command, imagePullPolicy: "IfNotPresent", ...this.#drawHooks() };
  }

  #drawInitContainers(): Container[] {
    return Array.from({ length: this.#random.integer(1, 3) }, (_, index) => {
      const sidecar = this.#random.chance(0.4);
      const command = behaviourCommand({
        exitAfterMs: sidecar && this.#random.chance(0.7) ? undefined : this.#random.integer(0, 10_000),
        exitCode: this.#random.pick([0, 0, 0, 0, 1]),
        deaf: this.#random.chance(0.1),
        unstartable: false,
      });
      return {
        name: `i${index}`,
        image: "busybox",
        imagePullPolicy: "IfNotPresent",
        command,
        ...(sidecar && { restartPolicy: "Always" }),
      };
    });
  }

  #drawHooks(): Pick<Container, "lifecycle"> {
    const exec = (kind: "postStart" | "preStop", mostMs: number): Handler => {
      const exitCode = this.#random.pick([0, 0, 0, 1]);
      return { exec: { command: hookCommand({ kind, exitCode, durationMs: this.#random.integer(0, mostMs) }) } };
    };
    const postStart = this.#random.chance(0.2) ? exec("postStart", 5000) : undefined;
    const preStop = this.#random.chance(0.4)
      ? this.#random.pick([
          exec("preStop", 50_000),
          exec("preStop", 5000),
          { sleep: { seconds: this.#random.integer(0, 40) } },
          { httpGet: { port: 80 } },
        ])
      : undefined;
    return { lifecycle: { ...(postStart && { postStart }), ...(preStop && { preStop }) } };
  }

  /** With `replace`, another pod of the same name comes in the same breath, as when a manifest changes. */
  #removePod(replace: boolean): void {
    const pods = [...this.#node.desired.values()];
    const pod = pods[this.#random.integer(0, pods.length - 1)];
    if (pod === undefined) return;
    const isEnding = this.#node.isEnding(pod.metadata.uid);
    this.#node.remove(pod.metadata.uid);
    this.#invariants.unwanted(pod.metadata.uid, isEnding);
    if (replace) this.#addPod(pod.metadata.name);
  }

  #restartNode(): void {
    this.#node.kill();
    const pauseMs = this.#random.integer(0, 5000);
    this.#clock.schedule("podwright to be started again", pauseMs, () => this.#node.start());
  }

  #killSomething(): void {
    const running = [...this.#world.containers.values()].filter((container) => container.state === "running");
    const container = running[this.#random.integer(0, running.length - 1)];
    if (container !== undefined && this.#random.chance(0.7)) this.#world.exit(container, 137, "OOMKilled");
    const sandboxes = [...this.#world.sandboxes.values()].filter((sandbox) => sandbox.ready);
    const sandbox = sandboxes[this.#random.integer(0, sandboxes.length - 1)];
    if (sandbox !== undefined && this.#random.chance(0.3)) this.#world.stopSandbox(sandbox.id);
  }

  /** Liveness: what is not as wanted although there was time enough. */
  async #disagreements(): Promise<string[]> {
    const problems: string[] = [];
    for (const sandbox of this.#world.sandboxes.values()) {
      const uid = sandbox.config.metadata?.uid ?? "";
      if (!this.#node.desired.has(uid)) problems.push(`sandbox ${sandbox.id} of unwanted pod ${uid} is still there`);
    }
    for (const [path] of this.#node.cgroups.applied) {
      const uid = /\/pod(uid-\d+)$/.exec(path)?.[1];
      if (uid !== undefined && !this.#node.desired.has(uid)) problems.push(`cgroup ${path} is still there`);
    }
    for (const directory of ["/var/lib/kubelet/pods", "/var/log/pods", "/var/log/containers"]) {
      for (const { name } of await this.#node.files.list(directory)) {
        const uid = /uid-\d+/.exec(name)?.[0];
        if (uid !== undefined && !this.#node.desired.has(uid)) problems.push(`${directory}/${name} is still there`);
      }
    }
    for (const pod of this.#node.desired.values()) {
      problems.push(...this.#disagreementsOf(pod), ...this.#staleSandboxes(pod.metadata.uid));
    }
    return problems;
  }

  #disagreementsOf(pod: Pod): string[] {
    const { uid } = pod.metadata;
    const policy = pod.spec.restartPolicy ?? "Always";
    return pod.spec.containers.flatMap((container) => {
      const { exitAfterMs, unstartable } = parseBehaviour(container.command ?? []);
      const instances = this.#instances(uid, container.name);
      const running = instances.filter((instance) => instance.state === "running").length;
      if (pod.spec.activeDeadlineSeconds !== undefined) {
        return running === 0 ? [] : [`${uid}/${container.name} runs after the pod's deadline`];
      }
      const hookFails = parseHook(container.lifecycle?.postStart?.exec?.command ?? [])?.exitCode === 1;
      const canRun = !unstartable && !hookFails && container.image !== "missing:1" && !mayBeKilled(container);
      const endless = exitAfterMs === undefined && canRun;
      const mayRest = (policy === "Never" && this.#everExited(pod)) || !canInitialize(pod);
      if (endless && !mayRest && running !== 1) {
        return [`${uid}/${container.name} should run, and ${running} instances do`];
      }
      const longDead = instances.filter((instance) => instance.state === "exited" && this.#isLongDead(instance));
      if (longDead.length > 1) return [`${uid}/${container.name} has ${longDead.length} dead instances`];
      return [];
    });
  }

  /** Longer than it takes to be noticed. */
  #isLongDead({ finishedAt }: SimContainer): boolean {
    const collectedWithinMs = 30_000;
    return Number(finishedAt / 1_000_000n) + collectedWithinMs < this.#clock.wallMs;
  }

  /** Of a pod's dead and empty sandboxes only the newest stays. */
  #staleSandboxes(uid: string): string[] {
    const attemptOf = (sandbox: SimSandbox): number => sandbox.config.metadata?.attempt ?? 0;
    const sandboxes = [...this.#world.sandboxes.values()].filter(({ config }) => config.metadata?.uid === uid);
    const newest = Math.max(...sandboxes.map(attemptOf));
    const used = new Set([...this.#world.containers.values()].map(({ sandboxId }) => sandboxId));
    return sandboxes
      .filter((sandbox) => !sandbox.ready && !used.has(sandbox.id) && attemptOf(sandbox) !== newest)
      .map((sandbox) => `sandbox ${sandbox.id} of ${uid} is dead, empty and not the newest`);
  }

  #instances(uid: string, name: string): SimContainer[] {
    return [...this.#world.containers.values()].filter(
      (container) =>
        container.config.labels["io.kubernetes.pod.uid"] === uid && container.config.metadata?.name === name,
    );
  }

  /** Under Never a pod that lost a container or its sandbox is over, rightly. */
  #everExited(pod: Pod): boolean {
    return this.#node.entries.some(
      (entry) => entry.pod?.uid === pod.metadata.uid && /Died|Terminating/.test(entry.what),
    );
  }
}

/** Whether every init container ends well; sidecars only have to start. */
function canInitialize(pod: Pod): boolean {
  return (pod.spec.initContainers ?? []).every(({ command, restartPolicy }) => {
    return restartPolicy === "Always" || parseBehaviour(command ?? []).exitCode === 0;
  });
}
