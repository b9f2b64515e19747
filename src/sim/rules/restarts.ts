import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import { lifeStarted } from "../../journal/entry.ts";
import type { SimEntry } from "../life/node.ts";
import { attemptOf, nameOf, type SimContainer, type WorldChange } from "../world-model.ts";
import type { Break, Rule, Scene } from "./rule.ts";

interface Exit {
  readonly container: SimContainer;
  readonly atMs: number;
  /** The node's life in which it was. */
  readonly life: number;
  readonly wallOffsetMs: number;
  /** Podwright told it to stop. */
  readonly stopped: boolean;
}

interface BackOff {
  readonly delayMs: number;
  readonly sinceMs: number;
}

const firstDelayMs = 10_000;
const longestDelayMs = 300_000;
const forgottenMs = 2 * longestDelayMs;
/** The runtime's times are rounded. */
const roundingMs = 5;
/** From the end of a back-off to the start. */
const startMs = 30_000;

/** A container runs again only as its policy allows, later and later, and is counted (design invariant 2). */
export class Restarts implements Rule {
  readonly #scene: Scene;
  readonly #broken: Break;
  /** By `uid/name`. */
  readonly #lastExit = new Map<string, Exit>();
  /** By `uid/name image`. */
  readonly #backOffs = new Map<string, BackOff>();
  readonly #stopping = new WeakSet<SimContainer>();
  /** Pods of which one container has started all over: from then on none needs a reason of its own. */
  readonly #startedOver = new Set<string>();
  /** What containers were first given, by `uid/name`. */
  readonly #resources = new Map<string, string>();

  constructor(scene: Scene, broken: Break) {
    this.#scene = scene;
    this.#broken = broken;
  }

  change({ type, podUid: uid, container }: WorldChange): void {
    if (container === undefined) return;
    if (type === "stopping") this.#stopping.add(container);
    if (type === "exited") this.#exited(container, uid);
    if (type === "started") this.#started(container, uid);
  }

  entry({ what }: SimEntry): void {
    // How much of them a new life remembers is its own affair.
    if (what === lifeStarted) this.#backOffs.clear();
  }

  reborn(uid: string): void {
    for (const known of [this.#lastExit, this.#backOffs]) {
      for (const key of [...known.keys()]) if (key.startsWith(`${uid}/`)) known.delete(key);
    }
  }

  tampered(uid: string): void {
    this.reborn(uid);
  }

  /** What may run again and does not, although the longest back-off is over. */
  disagreements(): string[] {
    const { clock, world, node } = this.#scene;
    return [...this.#lastExit].flatMap(([key, { container, atMs }]) => {
      const [uid = "", name = ""] = key.split("/");
      const pod = node.desired.get(uid);
      const isRecent = clock.nowMs - atMs < longestDelayMs + startMs;
      if (isRecent || pod === undefined || !world.containers.has(container.id)) return [];
      if (world.running(uid, name) !== undefined || !mayAlwaysRestart(pod, name)) return [];
      return [`${key} ended ${Math.round((clock.nowMs - atMs) / 1000)} s ago and was not restarted`];
    });
  }

  #exited(container: SimContainer, uid: string): void {
    const { clock, pods, node } = this.#scene;
    // One that never ran has not ended.
    if (container.startedAt === 0n) return;
    const name = nameOf(container);
    // What the runtime lost track of is made anew at once, whatever its policy says.
    if (container.wasLost) return void this.#lastExit.delete(`${uid}/${name}`);
    const wallOffsetMs = clock.wallMs - clock.nowMs;
    const stopped = this.#stopping.has(container);
    this.#lastExit.set(`${uid}/${name}`, {
      container,
      atMs: clock.nowMs,
      life: node.lives,
      wallOffsetMs,
      stopped,
    });
    const pod = pods.get(uid);
    if (pod !== undefined && restartsAll(specOf(pod, name), container.exitCode)) this.#startedOver.add(uid);
  }

  #started(container: SimContainer, uid: string): void {
    const name = nameOf(container);
    const key = `${uid}/${name}`;
    const last = this.#lastExit.get(key);
    const pod = this.#scene.pods.get(uid);
    const resources = JSON.stringify((pod && specOf(pod, name))?.resources ?? {});
    if (!this.#resources.has(key)) this.#resources.set(key, resources);
    if (last === undefined || pod === undefined) return;
    const [before, now] = [attemptOf(last.container), attemptOf(container)];
    if (now <= before) this.#broken("restart counts grow", `${key} went from ${before} to ${now}`);
    const spec = specOf(pod, name);
    const isNewSandbox = last.container.sandboxId !== container.sandboxId;
    const isOther = last.container.config.image?.image !== container.config.image?.image;
    const isFree = this.#startedOver.has(uid);
    if (isFree || isOther || spec === undefined) return;
    this.#judgePolicy(pod, spec, last, isNewSandbox);
    if (!isNewSandbox) this.#judgeBackOff(key, last, spec);
  }

  #judgePolicy(pod: Pod, spec: Container, last: Exit, isNewSandbox: boolean): void {
    const { exitCode, reason } = last.container;
    const key = `${pod.metadata.uid}/${spec.name}`;
    const isInit = pod.spec.initContainers?.includes(spec) === true;
    // In a new sandbox init containers run again.
    if (isInit && (isNewSandbox || spec.restartPolicy === "Always")) return;
    if (spec.restartPolicyRules?.some(({ exitCodes }) => exitCodes?.values?.includes(exitCode)) === true) return;
    const policy = spec.restartPolicy ?? pod.spec.restartPolicy ?? "Always";
    if (policy === "Never") this.#broken("restart policy", `${key} restarted under Never`);
    const succeeded = exitCode === 0 && reason === "Completed" && !last.stopped;
    if (policy === "OnFailure" && succeeded) this.#broken("restart policy", `${key} succeeded and restarted`);
  }

  #judgeBackOff(key: string, last: Exit, spec: Container): void {
    const { clock, node } = this.#scene;
    const identity = `${key} ${spec.image}`;
    // Other resources start the back-off over, whenever the node has room for them.
    if (this.#resources.get(key) !== JSON.stringify(spec.resources ?? {})) return;
    const known = this.#backOffs.get(identity);
    const live = known !== undefined && last.atMs - known.sinceMs <= forgottenMs ? known : undefined;
    const waitedMs = clock.nowMs - last.atMs;
    // An exit is dated by the wall clock, which is read when the exit is first seen.
    const clockJumped = clock.wallMs - clock.nowMs !== last.wallOffsetMs;
    if (live !== undefined && !clockJumped && waitedMs < live.delayMs - roundingMs) {
      this.#broken("back-off", `${key} restarted ${waitedMs} ms after its exit instead of ${live.delayMs}`);
    }
    // One that an earlier life had begun to restart is not counted again.
    if (last.life !== node.lives) return;
    const delayMs = live === undefined ? firstDelayMs : Math.min(2 * live.delayMs, longestDelayMs);
    this.#backOffs.set(identity, { delayMs, sinceMs: clock.nowMs });
  }
}

/** Nothing but time keeps the container from running again. */
function mayAlwaysRestart(pod: Pod, name: string): boolean {
  const spec = pod.spec.containers.find((container) => container.name === name);
  if (spec === undefined || (spec.restartPolicy ?? pod.spec.restartPolicy) !== "Always") return false;
  const hasEnded = pod.spec.activeDeadlineSeconds !== undefined;
  const needsOthers = (pod.spec.initContainers ?? []).length > 0 || spec.env !== undefined;
  const needsPort = pod.spec.containers.some(({ ports }) => ports !== undefined);
  const isLate = (pod.spec.volumes ?? []).some((volume) => volume.name === "late");
  return !hasEnded && !needsOthers && !needsPort && !isLate && spec.image === "busybox";
}

function allOf(pod: Pod): Container[] {
  return [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
}

function specOf(pod: Pod, name: string): Container | undefined {
  return allOf(pod).find((container) => container.name === name);
}

function restartsAll(spec: Container | undefined, exitCode: number): boolean {
  return (
    spec?.restartPolicyRules?.some(({ action, exitCodes }) => {
      return action === "RestartAllContainers" && exitCodes?.values?.includes(exitCode) === true;
    }) === true
  );
}
