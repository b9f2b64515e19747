import type { Pod } from "../api/pod.ts";
import type { RuntimeWorld, SimContainer, WorldChange } from "./runtime-world.ts";

/** A pod that is wanted no longer. */
export interface Unwanted {
  readonly sinceMs: number;
  /** The node's life in which it was told. Later ones find an orphan and give it less time. */
  readonly life: number;
  /** It was being stopped before, for another reason. */
  readonly isEnding: boolean;
}

interface Hooked {
  readonly life: number;
  readonly endsAtMs: number;
}

/** A call that was on its way when something changed may still be carried out. */
const callMs = 500;

/**
 * What hooks and stops have to keep to (design: invariant 5), within one life of the node: preStop once at most and
 * before the stop signal, no SIGKILL before the grace is over, and a first start that waits for postStart.
 */
export class HookRules {
  readonly #world: RuntimeWorld;
  readonly #wanted: ReadonlyMap<string, Pod>;
  readonly #unwanted: ReadonlyMap<string, Unwanted>;
  readonly #life: () => number;
  readonly #break: (rule: string, detail: string) => void;
  readonly #preStops = new WeakMap<SimContainer, number>();
  readonly #postStarts = new WeakMap<SimContainer, Hooked>();
  /** The node's life in which the container was last sent its stop signal. */
  readonly #stopped = new WeakMap<SimContainer, number>();

  constructor(
    world: RuntimeWorld,
    wanted: ReadonlyMap<string, Pod>,
    unwanted: ReadonlyMap<string, Unwanted>,
    { life }: { readonly life: () => number },
    broken: (rule: string, detail: string) => void,
  ) {
    this.#world = world;
    this.#wanted = wanted;
    this.#unwanted = unwanted;
    this.#life = life;
    this.#break = broken;
  }

  judge({ type, podUid, container, hook, timeoutMs = 0 }: WorldChange): void {
    if (container === undefined) return;
    if (type === "hook" && hook?.kind === "preStop") this.#preStop(container, podUid);
    if (type === "hook" && hook?.kind === "postStart") {
      this.#postStarts.set(container, { life: this.#life(), endsAtMs: this.#world.clock.nowMs + hook.durationMs });
    }
    if (type === "stopping") this.#stopping(container, podUid, timeoutMs);
    if (type === "started") this.#started(container, podUid);
  }

  #preStop(container: SimContainer, uid: string): void {
    const what = `${uid}/${container.config.metadata?.name ?? ""}`;
    const life = this.#life();
    if (this.#preStops.get(container) === life) this.#break("preStop once", `${what} ran its preStop hook again`);
    if (this.#stopped.get(container) === life) this.#break("preStop before SIGTERM", `${what} ran it after that`);
    this.#preStops.set(container, life);
  }

  #stopping(container: SimContainer, uid: string, timeoutMs: number): void {
    this.#stopped.set(container, this.#life());
    const unwanted = this.#unwanted.get(uid);
    const graceSeconds = this.#wanted.get(uid)?.spec.terminationGracePeriodSeconds ?? 30;
    if (unwanted === undefined || unwanted.isEnding || unwanted.life !== this.#life()) return;
    const killMs = this.#world.clock.nowMs + timeoutMs;
    const graceEndMs = unwanted.sinceMs + graceSeconds * 1000;
    if (killMs < graceEndMs - callMs) {
      this.#break("the whole grace", `${uid} is killed ${graceEndMs - killMs} ms before its grace ends`);
    }
    const latestMs = Math.max(graceEndMs, this.#world.clock.nowMs) + 3000;
    if (killMs > latestMs) this.#break("no more than the grace", `${uid} is killed ${killMs - graceEndMs} ms late`);
  }

  #started(container: SimContainer, uid: string): void {
    if ((container.config.metadata?.attempt ?? 0) > 0) return;
    const names = (this.#wanted.get(uid)?.spec.containers ?? []).map(({ name }) => name);
    const own = names.indexOf(container.config.metadata?.name ?? "");
    const before = new Set(names.slice(0, Math.max(0, own)));
    for (const other of this.#world.containers.values()) {
      if (other.sandboxId !== container.sandboxId || other.state !== "running") continue;
      const hooked = this.#postStarts.get(other);
      const name = other.config.metadata?.name ?? "";
      if (hooked?.life !== this.#life() || !before.has(name)) continue;
      // A call that is told to have failed ends the wait, though the hook goes on.
      if ((other.config.metadata?.attempt ?? 0) === 0 && hooked.endsAtMs > this.#world.clock.nowMs + callMs) {
        this.#break("postStart is waited for", `${uid}: started while the hook of ${name} ran`);
      }
    }
  }
}
