import { InitRules } from "./init-rules.ts";
import type { Pod } from "../api/pod.ts";
import { HookRules, type Unwanted } from "./hook-rules.ts";
import type { RuntimeWorld, SimContainer, WorldChange } from "./runtime-world.ts";

/** A rule that was broken, and by what. */
export interface BrokenRule {
  readonly rule: string;
  readonly detail: string;
  readonly atMs: number;
}

/** What the rules have to know of the node. */
export interface NodeView {
  /** Whether the node has ever tried to start this container. */
  readonly tried: (uid: string, container: string) => boolean;
  /** How many lives it has had. */
  readonly life: () => number;
}

/**
 * Watches the simulated runtime and judges every change as it happens: what may never be, whatever goes wrong around it
 * (design: the invariants). Knows only what was wanted and what the runtime did, nothing of the node's own mind.
 */
export class Invariants {
  readonly broken: BrokenRule[] = [];
  readonly #world: RuntimeWorld;
  readonly #wanted: ReadonlyMap<string, Pod>;
  readonly #node: NodeView;
  readonly #lastExit = new Map<string, SimContainer>();
  /** UIDs that were wanted once and are not any more, with the moment at which the node was told. */
  readonly #unwanted = new Map<string, Unwanted>();
  readonly #hooks: HookRules;
  readonly #init: InitRules;

  /**
   * @param wanted every pod that was ever wanted, by UID; it may grow
   */
  constructor(world: RuntimeWorld, wanted: ReadonlyMap<string, Pod>, node: NodeView) {
    this.#world = world;
    this.#node = node;
    this.#wanted = wanted;
    this.#hooks = new HookRules(world, wanted, this.#unwanted, node, (rule, detail) => this.#break(rule, detail));
    this.#init = new InitRules(wanted, (rule, detail) => this.#break(rule, detail));
    world.onChange((change) => this.#judge(change));
  }

  /**
   * The node was told that the pod is wanted no longer: from the next call on nothing of it may start.
   * @param isEnding it was stopped for another reason already, so that its grace ends earlier
   */
  unwanted(uid: string, isEnding: boolean): void {
    this.#unwanted.set(uid, { sinceMs: this.#world.clock.nowMs, life: this.#node.life(), isEnding });
  }

  #judge(change: WorldChange): void {
    if (change.type === "started" && change.container !== undefined) this.#started(change.container, change.podUid);
    if (change.type === "exited" && change.container !== undefined) {
      this.#lastExit.set(`${change.podUid}/${nameOf(change.container)}`, change.container);
    }
    if (change.type === "sandboxStarted") this.#sandboxStarted(change.podUid);
    this.#hooks.judge(change);
    this.#init.judge(change);
  }

  #started(container: SimContainer, uid: string): void {
    const name = nameOf(container);
    const pod = this.#wanted.get(uid);
    if (pod === undefined) return this.#break("only wanted pods run", `${name} of unknown pod ${uid} started`);
    const twin = [...this.#world.containers.values()].find(
      (other) =>
        other !== container && other.state === "running" && nameOf(other) === name && this.#podOf(other) === uid,
    );
    if (twin !== undefined) this.#break("one instance of a container", `${uid}/${name} runs twice`);
    // A call that was on its way when the node was told may still be carried out.
    const since = this.#unwanted.get(uid)?.sinceMs;
    const startCallMaxMs = 500;
    if (since !== undefined && this.#world.clock.nowMs > since + startCallMaxMs) {
      this.#break("nothing starts in a pod that ends", `${uid}/${name} started`);
    }
    this.#judgeRestart(pod, container, `${uid}/${name}`);
    this.#judgeOrder(pod, container, uid);
  }

  #judgeRestart(pod: Pod, container: SimContainer, key: string): void {
    const last = this.#lastExit.get(key);
    if (last === undefined || last.startedAt === 0n) return;
    const init = pod.spec.initContainers?.find(({ name }) => name === nameOf(container));
    // Sidecars are always restarted, and in a new sandbox init containers run again.
    const again = init?.restartPolicy === "Always" || (init !== undefined && last.sandboxId !== container.sandboxId);
    const policy = again ? "Always" : (pod.spec.restartPolicy ?? "Always");
    if (policy === "Never") this.#break("restart policy", `${key} restarted under Never`);
    const succeeded = last.exitCode === 0 && last.reason === "Completed";
    if (policy === "OnFailure" && succeeded) this.#break("restart policy", `${key} succeeded and restarted`);
    const attempts = [last, container].map((instance) => instance.config.metadata?.attempt ?? 0);
    if ((attempts[1] ?? 0) <= (attempts[0] ?? 0)) {
      this.#break("restart counts grow", `${key} went from ${attempts.join(" to ")}`);
    }
  }

  /** On a pod's first start, containers start in the order of the spec; one that can't start holds up no other. */
  #judgeOrder(pod: Pod, container: SimContainer, uid: string): void {
    if ((container.config.metadata?.attempt ?? 0) > 0) return;
    const names = pod.spec.containers.map(({ name }) => name);
    for (const before of names.slice(0, Math.max(0, names.indexOf(nameOf(container))))) {
      if (!this.#node.tried(uid, before)) {
        this.#break("spec order", `${uid}/${nameOf(container)} started before ${before} was tried`);
      }
    }
  }

  #sandboxStarted(uid: string): void {
    const running = [...this.#world.containers.values()].filter(
      (other) => other.state === "running" && this.#podOf(other) === uid,
    );
    if (running.length > 0) {
      this.#break("one sandbox", `${uid} got a new sandbox while ${running.map(nameOf).join(", ")} ran`);
    }
  }

  #podOf(container: SimContainer): string | undefined {
    return this.#world.sandboxes.get(container.sandboxId)?.config.metadata?.uid;
  }

  #break(rule: string, detail: string): void {
    this.broken.push({ rule, detail, atMs: this.#world.clock.nowMs });
  }
}

function nameOf(container: SimContainer): string {
  return container.config.metadata?.name ?? "";
}
