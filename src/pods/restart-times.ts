import type { Container, ResourceRequirements } from "../api/container.ts";
import { BackOff } from "../base/back-off.ts";
import { type ContainerId, containerId } from "../base/ids.ts";
import type { Cause } from "../journal/entry.ts";
import { causeCodeOf } from "../journal/vocabulary.ts";
import type { Clock } from "../ports/clock.ts";
import type { PodActions } from "../runtime/actions/pod-actions.ts";
import { type ContainerStatus, findContainer, type PodStatus } from "../runtime/status/pod-status.ts";

/** A back-off as it is stored over a restart of podwright. */
export interface RememberedDelay {
  readonly key: string;
  readonly delayMs: number;
  /** When it last grew: wall clock, milliseconds since the epoch. */
  readonly updatedAt: number;
  /** The instance whose exit lengthened it, if that exit restarts the whole pod. */
  readonly startsOver?: string | undefined;
}

/** An instance that was stopped to be restarted, as it is stored over a restart of podwright. */
export interface RememberedStop {
  readonly id: string;
  readonly code: string;
  readonly message: string;
}

const initialMs = 10_000;
/** A container that ran for longer since its last restart resets its back-off, whatever the maximum is. */
const expiryMs = 600_000;
/** Never equals a container's key. */
const sandboxKey = "sandbox";
/** Clock adjustments are smaller; only a set clock causes back-offs to be rewritten. */
const jumpMs = 1000;

/**
 * When a pod's containers may be restarted: crash-loop back-off, 10 s doubled to `maxContainerRestartPeriod`, counted
 * from the exit.
 *
 * The runtime reports exits in wall-clock time, which may jump. Each exit is converted to the monotonic clock when
 * first seen, so a later jump changes no wait. What is stored for the next run uses the wall clock, and follows its
 * jumps.
 */
export class RestartTimes {
  readonly #clock: Clock;
  readonly #backOff: BackOff;
  #exits = new Map<ContainerId, number>();
  readonly #delays = new Map<string, RememberedDelay>();
  /** Instances that podwright stopped to restart them, and why. */
  readonly #stopped = new Map<ContainerId, Cause>();
  /** Instances whose exits restart their pod; it is done when they are removed. */
  readonly #startOvers = new Set<string>();
  /** Exits whose back-off is skipped on a user's request. */
  readonly #waived = new Set<ContainerId>();
  #isSandboxDue = false;
  /** Offset from the monotonic to the wall clock, in ms, that the delays are stored with. */
  #wallOffsetMs: number;

  constructor(clock: Clock, maxMs: number) {
    this.#clock = clock;
    this.#wallOffsetMs = clock.now() - clock.monotonic();
    this.#backOff = new BackOff(initialMs, maxMs, expiryMs);
  }

  /** Restores the back-offs and stops of an earlier run. */
  remember(delays: readonly RememberedDelay[], stops: readonly RememberedStop[] = []): void {
    const { now, monotonic } = { now: this.#clock.now(), monotonic: this.#clock.monotonic() };
    this.#followJump();
    for (const delay of delays) {
      this.#backOff.restore(delay.key, delay.delayMs, monotonic - Math.max(0, now - delay.updatedAt));
      this.#delays.set(delay.key, delay);
      if (delay.startsOver !== undefined) this.#startOvers.add(delay.startsOver);
    }
    for (const { id, code, message } of stops) this.stopped(containerId(id), { code: causeCodeOf(code), message });
  }

  /** The current back-offs, for {@link remember} in a later run. */
  delays(): RememberedDelay[] {
    this.#followJump();
    return [...this.#delays.values()];
  }

  /** The instances stopped to be restarted that have no successor yet, likewise. */
  stops(): RememberedStop[] {
    return [...this.#stopped].map(([id, { code, message }]) => ({ id, code, message }));
  }

  /** Notes the exits of a new observation and drops those of removed containers. */
  observe(status: PodStatus): void {
    const exits = new Map<ContainerId, number>();
    for (const container of status.containers) {
      if (container.state !== "exited") continue;
      exits.set(container.id, this.#exits.get(container.id) ?? this.#firstSeen(container));
    }
    this.#exits = exits;
    const ids = new Set<string>(status.containers.map(({ id }) => id));
    for (const id of this.#startOvers) if (!ids.has(id)) this.#startOvers.delete(id);
    const latest = latestRun(status);
    for (const id of this.#stopped.keys()) if (!latest.has(id)) this.#stopped.delete(id);
    for (const id of this.#waived) if (!ids.has(id)) this.#waived.delete(id);
  }

  /** What waits now waits no longer. The next exit waits longer still: what it counts is restarts. */
  retryNow(): void {
    for (const id of this.#exits.keys()) this.#waived.add(id);
    this.#isSandboxDue = true;
  }

  /** Notes that podwright stops this instance to restart it, whatever its exit code. */
  stopped(id: ContainerId, cause: Cause): void {
    this.#stopped.set(id, cause);
  }

  /** Why podwright stopped this instance to restart it; undefined if it did not. */
  restartCause(exited: ContainerStatus): Cause | undefined {
    return this.#stopped.get(exited.id);
  }

  /** The instances that podwright stopped to restart them. */
  get restarting(): ReadonlySet<ContainerId> {
    return new Set(this.#stopped.keys());
  }

  /** True when the pod restart that this exit requested has begun, also in an earlier run. */
  startsOver(exited: ContainerStatus): boolean {
    return this.#startOvers.has(exited.id);
  }

  /** Monotonic ms at which the back-off after this exit ends; undefined: none. */
  endsAt(container: Container, exited: ContainerStatus): number | undefined {
    return this.#waived.has(exited.id) ? undefined : this.#backOff.endsAt(key(container), this.#exitOf(exited));
  }

  /** The container's current back-off delay in ms; 0: none. */
  delayMs(container: Container): number {
    return this.#backOff.get(key(container));
  }

  /**
   * Notes that a container is being started, as decided from `before`: after an exit it is a restart, and the next exit
   * waits longer, whatever becomes of this one. Planned starts do not count.
   */
  attempted(container: Container, before: PodStatus): void {
    const exited = findContainer(before, container.name);
    if (exited?.state === "exited") this.#grow(key(container), this.#exitOf(exited));
  }

  /** Notes that a restart of all containers begins. */
  acting({ restartAll }: PodActions): void {
    // A retry of a pod restart that has begun is the same restart.
    if (restartAll === undefined || this.#startOvers.has(restartAll.source.id)) return;
    const { container, source } = restartAll;
    this.#startOvers.add(source.id);
    this.#grow(key(container), this.#exitOf(source), source.id);
  }

  /** Notes that a sandbox is being created. If it replaces another and is lost soon, its successor backs off. */
  sandboxMade(before: PodStatus): void {
    this.#isSandboxDue = false;
    if (before.sandboxes.length > 0) this.#grow(sandboxKey, this.#clock.monotonic());
  }

  /** Monotonic ms before which no sandbox is recreated; undefined: immediately. */
  sandboxEndsAt(): number | undefined {
    return this.#isSandboxDue ? undefined : this.#backOff.endsAtSinceUpdate(sandboxKey, this.#clock.monotonic());
  }

  #grow(name: string, eventMs: number, startsOver?: ContainerId): void {
    this.#backOff.next(name, eventMs, this.#clock.monotonic());
    const delayMs = this.#backOff.get(name);
    this.#followJump();
    this.#delays.set(name, { key: name, delayMs, updatedAt: this.#clock.now(), startsOver });
  }

  /** Re-dates the delays when the wall clock was set since they were stored. */
  #followJump(): void {
    const offsetMs = this.#clock.now() - this.#clock.monotonic();
    const byMs = Math.round(offsetMs - this.#wallOffsetMs);
    if (Math.abs(byMs) < jumpMs) return;
    this.#wallOffsetMs = offsetMs;
    for (const [name, delay] of this.#delays) {
      this.#delays.set(name, { ...delay, updatedAt: delay.updatedAt + byMs });
    }
  }

  #exitOf(exited: ContainerStatus): number {
    return this.#exits.get(exited.id) ?? this.#firstSeen(exited);
  }

  #firstSeen(container: ContainerStatus): number {
    const ago = this.#clock.now() - Number(container.finishedAt / 1_000_000n);
    return this.#clock.monotonic() - Math.max(0, ago);
  }
}

/** The newest instance of each container that has run: one that was only created may be replaced. */
function latestRun({ containers }: PodStatus): ReadonlySet<ContainerId> {
  const latest = new Map<string, ContainerId>();
  for (const { id, name, state } of containers) if (state !== "created" && !latest.has(name)) latest.set(name, id);
  return new Set(latest.values());
}

/** An image or resource change resets the back-off, as with upstream's key; the order of resources does not. */
function key({ name, image, resources = {} }: Container): string {
  const amounts = (list: ResourceRequirements["limits"] = {}): unknown =>
    Object.entries(list).toSorted(([a], [b]) => a.localeCompare(b));
  return JSON.stringify([name, image, amounts(resources.limits), amounts(resources.requests)]);
}
