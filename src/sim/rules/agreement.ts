import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import { isRejection } from "../../journal/vocabulary.ts";
import { imageVolumesOf } from "../../runtime/config/volume-images.ts";
import { deviceVolumes } from "../csi/claimed-volumes.ts";
import { parseBehaviour, parseHook } from "../behaviour.ts";
import type { SimEntry } from "../life/node.ts";
import { mayBeKilled } from "../life/pod-probes.ts";
import { attemptOf, type SimContainer, type SimSandbox, type WorldChange } from "../world-model.ts";
import type { Break, Rule, Scene } from "./rule.ts";
import { asksForAll } from "./start-over.ts";
import { podsDirectory } from "../life/recorded.ts";
import { isUnrecorded } from "./unrecorded.ts";

const directories = [podsDirectory, "/var/log/pods", "/var/log/containers"];
/** The longest drawn grace period, and a little. */
const longestStopMs = 60_000;
/** Three init containers of 10 s each, the hooks of the others, and the time to notice each exit. */
const initializedWithinMs = 60_000;
const maxLogFiles = 5;

/** Once nothing fails any more, the desired state is reached and nothing else is left (design invariant 7). */
export class Agreement implements Rule {
  readonly #scene: Scene;
  readonly #broken: Break;
  /** Pods that were stopped or have an exited container: under Never they have rightly ended. */
  readonly #everEnded = new Set<string>();
  /** Simulated ms at which pods were last told to stop. */
  readonly #endingMs = new Map<string, number>();
  /** When pods first got a sandbox, in simulated ms, with the wall clock offset. */
  readonly #begun = new Map<string, { readonly atMs: number; readonly wallOffsetMs: number }>();
  readonly #rejected = new Set<string>();
  /** Simulated ms of the last exit or removal for a restart of all containers. */
  readonly #startingOverMs = new Map<string, number>();

  constructor(scene: Scene, broken: Break) {
    this.#scene = scene;
    this.#broken = broken;
  }

  change({ type, container, podUid }: WorldChange): void {
    const { nowMs: atMs, wallMs } = this.#scene.clock;
    if (type === "sandboxStarted" && !this.#begun.has(podUid)) {
      this.#begun.set(podUid, { atMs, wallOffsetMs: wallMs - atMs });
    }
    if (container === undefined) return;
    const isAsker = this.#asksForAll(podUid, container);
    // The requesting container waits first, while the others run; it is removed last.
    const goes = isAsker ? type === "removed" : type === "exited" && this.#isToStartOver(podUid);
    if (goes) this.#startingOverMs.set(podUid, atMs);
    if (type !== "exited") return;
    this.#everEnded.add(podUid);
  }

  entry({ what, pod, atMs, cause }: SimEntry): void {
    // A pod that returns under its UID may be rejected while the earlier one ends: it is over as soon as it begins.
    const reason = what === "PodTerminating" ? (cause?.code ?? "") : what;
    const isRejected = isRejection(reason) || reason === "Preempting" || reason === "Terminated";
    if (isRejected && pod !== undefined) this.#rejected.add(pod.uid);
    if (what !== "PodTerminating" || pod === undefined) return;
    this.#everEnded.add(pod.uid);
    this.#endingMs.set(pod.uid, atMs);
  }

  reborn(uid: string): void {
    this.#everEnded.delete(uid);
    this.#rejected.delete(uid);
    this.#begun.delete(uid);
    this.#startingOverMs.delete(uid);
  }

  async disagreements(): Promise<string[]> {
    const own = [...this.#scene.node.desired.values()].flatMap((pod) => [
      ...pod.spec.containers.flatMap((container) => this.#disagreementsOf(pod, container)),
      ...this.#staleSandboxes(pod.metadata.uid),
    ]);
    return [...(await this.#leftovers()), ...(await this.#lostLogs()), ...this.#unknown(), ...own];
  }

  async atRest(): Promise<void> {
    for (const pod of this.#scene.pods.values()) {
      for (const { name } of pod.spec.containers) await this.#judgeLogs(pod, name);
    }
  }

  async #leftovers(): Promise<string[]> {
    const { world, node } = this.#scene;
    const { desired, cgroups, files } = node;
    const problems: string[] = [];
    for (const { id, config } of world.sandboxes.values()) {
      const uid = config.metadata?.uid ?? "";
      if (!desired.has(uid)) problems.push(`sandbox ${id} of unwanted pod ${uid} is still there`);
    }
    for (const [path] of cgroups.applied) {
      const uid = /\/pod(uid-\w+)$/.exec(path)?.[1];
      if (uid !== undefined && !desired.has(uid)) problems.push(`cgroup ${path} is still there`);
    }
    for (const directory of directories) {
      for (const { name } of await files.list(directory)) {
        const uid = /uid-\w+/.exec(name)?.[0];
        if (uid === undefined || desired.has(uid)) continue;
        const isNobodys = directory === podsDirectory && isUnrecorded(node, uid);
        if (!isNobodys) problems.push(`${directory}/${name} is still there`);
      }
    }
    for (const { view } of node.pods()) {
      if (!desired.has(view.ref.uid)) problems.push(`podwright still works on pod ${view.ref.uid}`);
    }
    return problems;
  }

  /** Of containers that write to no file: between renaming a log and reopening it none is there. */
  async #lostLogs(): Promise<string[]> {
    const { world, node, pods } = this.#scene;
    const problems: string[] = [];
    for (const { metadata, spec } of pods.values()) {
      for (const { name } of spec.containers) {
        const running = world.running(metadata.uid, name);
        if (running === undefined || (await node.files.stat(running.logPath)) !== undefined) continue;
        problems.push(`${metadata.uid}/${name} writes to no file`);
      }
    }
    return problems;
  }

  #unknown(): string[] {
    const { desired, pods } = { desired: this.#scene.node.desired, pods: this.#scene.node.pods() };
    const known = new Set<string>(pods.map(({ view }) => view.ref.uid));
    const forgotten = [...desired.keys()].filter((uid) => !known.has(uid) && !this.#rejected.has(uid));
    return forgotten.map((uid) => `podwright knows nothing of wanted pod ${uid}`);
  }

  #disagreementsOf(pod: Pod, container: Container): string[] {
    const { uid } = pod.metadata;
    const where = `${uid}/${container.name}`;
    const all = this.#instances(uid, container.name);
    const running = all.filter((instance) => instance.state === "running").length;
    if (all.some((instance) => instance.state === "unknown")) return [`${where} is still unknown to the runtime`];
    if (pod.spec.activeDeadlineSeconds !== undefined) {
      const { atMs = 0, wallOffsetMs = 0 } = this.#begun.get(uid) ?? {};
      // A later run relies on the wall clock alone.
      const { wallMs, nowMs } = this.#scene.clock;
      if (wallMs - nowMs !== wallOffsetMs && this.#scene.node.lives > 1) return [];
      const dueMs = atMs + pod.spec.activeDeadlineSeconds * 1000;
      const endsMs = Math.max(this.#endingMs.get(uid) ?? 0, dueMs) + longestStopMs;
      return running === 0 || this.#scene.clock.nowMs < endsMs ? [] : [`${where} runs after the pod's deadline`];
    }
    if (!this.#shouldRun(pod, container) || running === 1) return [];
    return [`${where} should run, and ${running} instances do`];
  }

  /** True for a container that never exits by itself and that nothing keeps from running. */
  #shouldRun(pod: Pod, container: Container): boolean {
    const { uid } = pod.metadata;
    const { exitAfterMs, unstartable } = parseBehaviour(container.command ?? []);
    if (exitAfterMs !== undefined || unstartable || mayBeKilled(container) || hookExit(container) === 1) return false;
    // A stopped init container that may not restart ends the pod, whatever the policies of others.
    const mayRest =
      this.#everEnded.has(uid) &&
      [container, ...(pod.spec.initContainers ?? [])].some(({ restartPolicy }) => {
        return (restartPolicy ?? pod.spec.restartPolicy ?? "Always") !== "Always";
      });
    if (mayRest || this.#rejected.has(uid) || this.#isStartingOver(uid)) return false;
    if (this.#isWaiting(pod) || this.#isExcluded(pod)) return false;
    return this.#hasAll(pod, container) && canInitialize(pod);
  }

  #isToStartOver(uid: string): boolean {
    const own = [...this.#scene.world.containers.values()].filter(({ config }) => {
      return config.labels["io.kubernetes.pod.uid"] === uid;
    });
    return own.some((container) => this.#asksForAll(uid, container));
  }

  /** Its exit requests a restart of all containers. */
  #asksForAll(uid: string, container: SimContainer): boolean {
    return container.state === "exited" && asksForAll(this.#scene.pods.get(uid), container);
  }

  /** Its init containers run again before the others. */
  #isStartingOver(uid: string): boolean {
    const sinceMs = this.#startingOverMs.get(uid);
    return sinceMs !== undefined && this.#scene.clock.nowMs < sinceMs + initializedWithinMs;
  }

  /** Everything for its creation exists. */
  #hasAll(pod: Pod, container: Container): boolean {
    const { node, world } = this.#scene;
    const { image = "", imagePullPolicy = "", env } = container;
    const needsLate =
      (pod.spec.volumes ?? []).some(({ name }) => name === "late") ||
      (env ?? []).some(({ valueFrom }) => valueFrom?.configMapKeyRef?.name === "late");
    const volumes = imageVolumesOf(pod, container).map((volume) => [volume.reference, volume.pullPolicy] as const);
    const hasImages = [[image, imagePullPolicy] as const, ...volumes].every(([name, policy]) => {
      return (policy !== "Never" || world.images.has(name)) && !name.startsWith("missing");
    });
    return (node.objects.lateIsThere || !needsLate) && hasImages;
  }

  /** Waits for another desired pod of its name. */
  #isWaiting({ metadata }: Pod): boolean {
    return [...this.#scene.node.desired.values()].some((other) => {
      return other.metadata.name === metadata.name && other.metadata.uid !== metadata.uid;
    });
  }

  /** Another desired pod has a volume that one pod at a time may use. */
  #isExcluded({ metadata, spec }: Pod): boolean {
    const { desired, drivers } = this.#scene.node;
    const claims = new Set((spec.volumes ?? []).map(({ persistentVolumeClaim: claim }) => claim?.claimName));
    const volumes = deviceVolumes.filter(({ isExclusive, claim }) => isExclusive && claims.has(claim));
    return volumes.some(({ handle }) =>
      [...drivers.volumes.published].some(([target, volume]) => {
        const uid = target.split("/")[5] ?? "";
        return volume === handle && uid !== metadata.uid && desired.has(uid);
      }),
    );
  }

  /** Of a pod's dead and empty sandboxes only the newest stays. */
  #staleSandboxes(uid: string): string[] {
    const { world } = this.#scene;
    const sandboxes = [...world.sandboxes.values()].filter(({ config }) => config.metadata?.uid === uid);
    const newest = Math.max(...sandboxes.map(attemptOf));
    const used = new Set([...world.containers.values()].map(({ sandboxId }) => sandboxId));
    const stale = (sandbox: SimSandbox): boolean =>
      !sandbox.ready && !used.has(sandbox.id) && attemptOf(sandbox) !== newest;
    const ready = sandboxes.filter((sandbox) => sandbox.ready).length;
    const held = (sandbox: SimSandbox): boolean => !sandbox.ready && !sandbox.released;
    return [
      ...sandboxes.filter(held).map(({ id }) => `sandbox ${id} of ${uid} is dead and holds its network`),
      ...sandboxes.filter(stale).map(({ id }) => `sandbox ${id} of ${uid} is dead, empty and not the newest`),
      ...(ready > 1 ? [`${uid} has ${ready} ready sandboxes`] : []),
    ];
  }

  #instances(uid: string, name: string): SimContainer[] {
    return [...this.#scene.world.containers.values()].filter(({ config }) => {
      return config.labels["io.kubernetes.pod.uid"] === uid && config.metadata?.name === name;
    });
  }

  /** A running container's log exists at its path, with no more rotated files than allowed. */
  async #judgeLogs({ metadata: { namespace, name, uid } }: Pod, container: string): Promise<void> {
    const { world, node } = this.#scene;
    const running = world.running(uid, container);
    if (running === undefined) return;
    const where = `${uid}/${container}`;
    const log = await node.files.stat(running.logPath);
    const own = `${attemptOf(running)}.log`;
    const logs = await node.files.list(`/var/log/pods/${namespace}_${name}_${uid}/${container}`);
    const rotated = logs.filter((file) => file.name.startsWith(own)).length;
    if (rotated > maxLogFiles + 1) this.#broken("logs are rotated", `${where} has ${rotated} logs`);
    const size = log?.size ?? 0;
    if (size > maxLogBytes) this.#broken("logs are rotated", `${where} has a log of ${size} bytes`);
  }
}

/** The limit plus what a container writes between two size checks. */
const maxLogBytes = 20_000;

/** Whether every init container succeeds; sidecars only have to start. */
function canInitialize(pod: Pod): boolean {
  return (pod.spec.initContainers ?? []).every((init) => {
    if (init.restartPolicy !== "Always") return parseBehaviour(init.command ?? []).exitCode === 0;
    // Its hook fails when the container exits first.
    const hookMayFail = hookExit(init) === 1 || (hookExit(init) !== undefined && init.command?.[1] === "exit");
    return !mayBeKilled(init) && init.startupProbe === undefined && !hookMayFail;
  });
}

function hookExit({ lifecycle }: Container): number | undefined {
  return parseHook(lifecycle?.postStart?.exec?.command ?? [])?.exitCode;
}
