import type { SimEntry } from "../life/node.ts";
import { nameOf, type SimContainer, type WorldChange } from "../world-model.ts";
import { forgetPod } from "./entry-data.ts";
import type { Break, Rule, Scene } from "./rule.ts";

interface Hooked {
  readonly life: number;
  readonly endsAtMs: number;
}

/** A call in progress at the time of a change may still be executed. */
const callMs = 500;
/** A container's minimum time between its stop signal and SIGKILL. */
const leastMs = 2000;

/**
 * Rules for hooks and stops (design invariant 5) within one run: preStop at most once and before the stop signal, no
 * SIGKILL before the end of the grace period, sidecars after the containers that they serve, and a first start in a
 * sandbox that waits for postStart.
 */
export class HookRules implements Rule {
  readonly #scene: Scene;
  readonly #broken: Break;
  /** The run in which the preStop hook last began, and its end. */
  readonly #preStops = new WeakMap<SimContainer, Hooked & { readonly beganMs: number }>();
  readonly #postStarts = new WeakMap<SimContainer, Hooked>();
  /** The run in which the container last got its stop signal. */
  readonly #stopped = new WeakMap<SimContainer, number>();
  /** Simulated ms of podwright's first operation on a container in its pod's sandbox, by `uid/name`. */
  readonly #begun = new Map<string, number>();
  /** The first instance of each container in each sandbox, by `sandbox/name`. */
  readonly #firsts = new Map<string, SimContainer>();
  /** Pods that a shutdown of the machine gave less time, which they keep when it is cancelled. */
  readonly #shortened = new Set<string>();

  constructor(scene: Scene, broken: Break) {
    this.#scene = scene;
    this.#broken = broken;
  }

  change({ type, podUid: uid, container, hook, timeoutMs = 0 }: WorldChange): void {
    if (type === "sandboxStarted") forgetPod(uid, this.#begun);
    if (container === undefined) return;
    const { clock, node } = this.#scene;
    if (type === "hook" && hook?.kind === "preStop") this.#preStop(container, uid, hook.durationMs);
    if (type === "hook" && hook?.kind === "postStart") {
      this.#postStarts.set(container, { life: node.lives, endsAtMs: clock.nowMs + hook.durationMs });
    }
    // A container that never ran has no hook, and needs no time.
    if (type === "stopping" && container.startedAt > 0n) this.#stopping(container, uid, timeoutMs);
    if (type === "started") this.#started(container, uid);
  }

  entry({ kind, what, pod, container, atMs }: SimEntry): void {
    const isShortened = what === "PodTerminating" && this.#scene.node.power.login.isPreparing;
    if (isShortened && pod !== undefined) this.#shortened.add(pod.uid);
    const key = `${pod?.uid}/${container}`;
    if (kind === "action" && !this.#begun.has(key)) this.#begun.set(key, atMs);
  }

  reborn(uid: string): void {
    forgetPod(uid, this.#begun);
    this.#shortened.delete(uid);
  }

  #preStop(container: SimContainer, uid: string, durationMs: number): void {
    const { lives } = this.#scene.node;
    const { nowMs } = this.#scene.clock;
    const what = `${uid}/${nameOf(container)}`;
    const isSecond = this.#preStops.get(container)?.life === lives;
    if (isSecond) this.#broken("preStop once", `${what} ran its preStop hook again`);
    if (this.#stopped.get(container) === lives) this.#broken("preStop before SIGTERM", `${what} ran it after that`);
    this.#preStops.set(container, { life: lives, beganMs: nowMs, endsAtMs: nowMs + durationMs });
  }

  #stopping(container: SimContainer, uid: string, timeoutMs: number): void {
    const { clock, node, pods, unwanted } = this.#scene;
    this.#stopped.set(container, node.lives);
    const hooked = this.#preStops.get(container);
    // A hook whose call failed is over for podwright. More than the minimum: the grace period continues.
    const isWaited = hooked?.life === node.lives && node.soundSinceMs < hooked.beganMs && timeoutMs > leastMs;
    if (isWaited && hooked.endsAtMs > clock.nowMs + callMs) {
      this.#broken("preStop is waited for", `${uid}/${nameOf(container)} was stopped while it ran`);
    }
    const gone = unwanted.get(uid);
    const graceSeconds = gone?.graceSeconds ?? pods.get(uid)?.spec.terminationGracePeriodSeconds ?? 30;
    // A shutdown of the machine gives it no more time than its group has.
    const mayBeShort = gone?.isEnding === true || node.power.login.isPreparing || this.#shortened.has(uid);
    if (gone === undefined || mayBeShort || !gone.reachedNode || gone.life !== node.lives) return;
    const killMs = clock.nowMs + timeoutMs;
    const graceEndMs = gone.sinceMs + graceSeconds * 1000;
    if (killMs < graceEndMs - callMs) {
      this.#broken("the full grace period", `${uid} is killed ${graceEndMs - killMs} ms before its grace ends`);
    }
    const latestMs = Math.max(graceEndMs, clock.nowMs) + 3000;
    if (killMs > latestMs) {
      this.#broken("no more than the grace period", `${uid} is killed ${killMs - graceEndMs} ms late`);
    }
    if (clock.nowMs < graceEndMs) this.#sidecarOrder(container, uid);
  }

  /** Within the grace period a sidecar is stopped after every regular container of its pod. */
  #sidecarOrder(container: SimContainer, uid: string): void {
    const pod = this.#scene.pods.get(uid);
    const index = pod?.spec.initContainers?.findIndex(({ name }) => name === nameOf(container)) ?? -1;
    if (pod?.spec.initContainers?.[index]?.restartPolicy !== "Always") return;
    const later = pod.spec.initContainers.slice(index + 1).filter(({ restartPolicy }) => restartPolicy === "Always");
    const first = [...pod.spec.containers, ...later].find(({ name }) => {
      return this.#scene.world.running(uid, name)?.sandboxId === container.sandboxId;
    });
    if (first === undefined) return;
    this.#broken("sidecars end last", `${uid}/${nameOf(container)} was stopped while ${first.name} ran`);
  }

  #started(container: SimContainer, uid: string): void {
    const { clock, world, node, pods } = this.#scene;
    const place = placeOf(container);
    if (this.#firsts.has(place)) return;
    this.#firsts.set(place, container);
    const names = (pods.get(uid)?.spec.containers ?? []).map(({ name }) => name);
    const own = names.indexOf(nameOf(container));
    for (const other of world.containers.values()) {
      if (other.sandboxId !== container.sandboxId || other.state !== "running") continue;
      const hooked = this.#postStarts.get(other);
      const index = names.indexOf(nameOf(other));
      if (hooked?.life !== node.lives || index === -1 || index >= own) continue;
      // A container that could not be started in its turn does not delay later ones, and starts when possible.
      const begunMs = names.slice(index + 1, own + 1).map((name) => this.#begun.get(`${uid}/${name}`) ?? 0);
      if (this.#firsts.get(placeOf(other)) !== other || Math.min(...begunMs) < other.startedMs) continue;
      // A call with a wrongly reported failure ends the wait, though the hook continues.
      if (hooked.endsAtMs <= clock.nowMs + callMs) continue;
      this.#broken("postStart is waited for", `${uid}: started while the hook of ${nameOf(other)} ran`);
    }
  }
}

function placeOf(container: SimContainer): string {
  return `${container.sandboxId}/${nameOf(container)}`;
}
