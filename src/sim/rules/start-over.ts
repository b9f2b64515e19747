import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import { lifeStarted } from "../../journal/entry.ts";
import type { SimEntry } from "../life/node.ts";
import { nameOf, type SimContainer, type WorldChange } from "../world-model.ts";
import { idOf } from "./entry-data.ts";
import type { Break, Rule, Scene } from "./rule.ts";

/** The longest back-off, after which everything is stopped without a grace period and removed. */
const doneWithinMs = 360_000;

interface Asked {
  /** Any of them that remains after a crash requests it again. */
  readonly by: readonly SimContainer[];
  /** Simulated ms from which the back-off of the last one counts. */
  readonly sinceMs: number;
  /** By the wall clock, as the runtime dates its exit. */
  readonly exitWallMs: number;
  /** Containers that existed then. */
  readonly before: ReadonlySet<string>;
}

/** When a container requests a restart of all containers, none of the pod's earlier containers remains in the end. */
export class StartOver implements Rule {
  readonly #scene: Scene;
  readonly #broken: Break;
  readonly #asked = new Map<string, Asked>();
  readonly #died = new Set<string>();
  /** Told to stop in this run, before podwright had seen their exit. */
  readonly #stopped = new Set<string>();

  constructor(scene: Scene, broken: Break) {
    this.#scene = scene;
    this.#broken = broken;
  }

  reborn(uid: string): void {
    this.#asked.delete(uid);
  }

  /** The result is not judged, but existing requests remain, together with later ones. */
  tampered(uid: string): void {
    const asked = this.#asked.get(uid);
    if (asked !== undefined) this.#asked.set(uid, { ...asked, before: new Set() });
  }

  change({ type, podUid: uid, sandbox, container }: WorldChange): void {
    // In a new sandbox other rules apply to the pod.
    if (type === "sandboxStopped" && sandbox !== undefined) this.#asked.delete(uid);
    if (type === "created" && container !== undefined) this.#runsAgain(uid, nameOf(container));
    if (type !== "exited" || container === undefined || !this.#asks(uid, container)) return;
    const { clock, world } = this.#scene;
    const earlier = this.#asked.get(uid)?.by.filter(({ id }) => world.containers.has(id)) ?? [];
    const own = [...world.containers.values()].filter(({ config }) => config.labels["io.kubernetes.pod.uid"] === uid);
    const before = new Set(own.map(({ id }) => id));
    const by = [...earlier, container];
    this.#asked.set(uid, { by, sinceMs: clock.nowMs, exitWallMs: clock.wallMs, before });
  }

  entry(entry: SimEntry): void {
    const uid = entry.pod?.uid ?? "";
    const id = idOf(entry);
    if (entry.what === lifeStarted) this.#stopped.clear();
    if (entry.what === "ContainerDied") this.#sees(uid, id);
    if (entry.what === "PodTerminating") this.#asked.delete(uid);
    if (entry.kind !== "action") return;
    if (entry.what === "StopContainer" && !this.#died.has(id)) this.#stopped.add(id);
    if (entry.what === "RemoveContainer") this.#removes(uid, id);
  }

  atRest(): void {
    const { clock, node } = this.#scene;
    for (const [uid, asked] of this.#asked) {
      if (asked.sinceMs + doneWithinMs > clock.nowMs || !node.desired.has(uid)) continue;
      const [left] = this.#left(uid, asked);
      if (left === undefined) continue;
      const by = asked.by.map(nameOf).join(", ");
      this.#broken("pods start over as a whole", `${uid}: ${by} asked for it, and ${left.id} is still there`);
    }
  }

  /** A run that first sees an exit after the wall clock went back takes it for more recent than it is. */
  #sees(uid: string, id: string): void {
    this.#died.add(id);
    const asked = this.#asked.get(uid);
    if (asked?.by.at(-1)?.id !== id) return;
    const { clock } = this.#scene;
    const sinceMs = clock.nowMs - Math.max(0, clock.wallMs - asked.exitWallMs);
    this.#asked.set(uid, { ...asked, sinceMs: Math.max(asked.sinceMs, sinceMs) });
  }

  /** A crash half-way must not lose the request. */
  #removes(uid: string, id: string): void {
    const asked = this.#asked.get(uid);
    const [last, another] = (asked?.by ?? []).filter((asker) => this.#scene.world.containers.has(asker.id));
    if (asked === undefined || last?.id !== id || another !== undefined) return;
    const left = this.#left(uid, asked).find((other) => other.id !== id && !this.#asks(uid, other));
    if (left === undefined) return;
    this.#broken("the triggering container is removed last", `${uid}: ${nameOf(last)} goes before ${nameOf(left)}`);
  }

  /**
   * A container that was being stopped for its own restart, before podwright could know its exit code, requests
   * nothing.
   */
  #runsAgain(uid: string, name: string): void {
    const asked = this.#asked.get(uid);
    if (asked === undefined) return;
    const by = asked.by.filter((asker) => nameOf(asker) !== name || !this.#stopped.has(asker.id));
    if (by.length === 0) this.#asked.delete(uid);
    else this.#asked.set(uid, { ...asked, by });
  }

  /** What existed at the request, and still does. */
  #left(uid: string, { before }: Asked): SimContainer[] {
    const names = new Set(this.#podOf(uid)?.spec.containers.map(({ name }) => name));
    const left = [...before].flatMap((id) => this.#scene.world.containers.get(id) ?? []);
    return left.filter((container) => names.has(nameOf(container)));
  }

  #asks(uid: string, container: SimContainer): boolean {
    return asksForAll(this.#podOf(uid), container);
  }

  #podOf(uid: string): Pod | undefined {
    return this.#scene.pods.get(uid);
  }
}

/** Whether this exit requests a restart of all containers. */
export function asksForAll(pod: Pod | undefined, container: SimContainer): boolean {
  const spec = pod?.spec.containers.find(({ name }) => name === nameOf(container));
  return container.startedAt !== 0n && restartsAll(spec, container.exitCode);
}

/** Whether a container's exit code restarts all containers. */
export function restartsAll(spec: Container | undefined, exitCode: number): boolean {
  return (
    spec?.restartPolicyRules?.some(({ action, exitCodes }) => {
      return action === "RestartAllContainers" && exitCodes?.values?.includes(exitCode) === true;
    }) === true
  );
}
