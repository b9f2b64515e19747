import type { Container, ResourceRequirements } from "../api/container.ts";
import { BackOff } from "../base/back-off.ts";
import type { ContainerId } from "../base/ids.ts";
import type { Cause } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { PodActions } from "../runtime/actions/pod-actions.ts";
import { type ContainerStatus, findContainer, type PodStatus } from "../runtime/status/pod-status.ts";

/** A back-off as it is remembered over a restart of podwright. */
export interface RememberedDelay {
  readonly key: string;
  readonly delayMs: number;
  /** When it last grew: wall clock, milliseconds since the epoch. */
  readonly updatedAt: number;
  /** The instance for whose exit it grew, where its whole pod starts over for that. */
  readonly startsOver?: string | undefined;
}

const initialMs = 10_000;
/** A container that ran for longer since its last restart starts over, whatever the longest back-off is. */
const expiryMs = 600_000;
/** No container's key looks like it. */
const sandboxKey = "sandbox";
/** A wall clock that is set moves by more; one that is only adjusted makes no back-off be written anew. */
const jumpMs = 1000;

/**
 * When the containers of one pod may be restarted: crash-loop back-off, 10 s doubled to
 * `maxContainerRestartPeriod`, counted from the exit.
 *
 * The runtime gives exits by wall clock, which may jump. Each exit is moved to the monotonic clock when it is first
 * seen, so that a later jump changes no wait. What another life is to remember is dated by the wall clock, and follows
 * its jumps.
 */
export class RestartTimes {
  readonly #clock: Clock;
  readonly #backOff: BackOff;
  #exits = new Map<ContainerId, number>();
  readonly #delays = new Map<string, RememberedDelay>();
  /** Instances that podwright stopped so that they be restarted, and why. */
  readonly #stopped = new Map<ContainerId, Cause>();
  /** Instances for whose exits their pod starts over; the last of it is that they are removed. */
  readonly #startOvers = new Set<string>();
  /** From the monotonic clock to the wall clock, in ms, as the delays are dated. */
  #wallOffsetMs: number;

  constructor(clock: Clock, maxMs: number) {
    this.#clock = clock;
    this.#wallOffsetMs = clock.now() - clock.monotonic();
    this.#backOff = new BackOff(initialMs, maxMs, expiryMs);
  }

  /** Takes up the back-offs of an earlier life. */
  remember(delays: readonly RememberedDelay[]): void {
    const { now, monotonic } = { now: this.#clock.now(), monotonic: this.#clock.monotonic() };
    this.#followJump();
    for (const delay of delays) {
      this.#backOff.restore(delay.key, delay.delayMs, monotonic - Math.max(0, now - delay.updatedAt));
      this.#delays.set(delay.key, delay);
      if (delay.startsOver !== undefined) this.#startOvers.add(delay.startsOver);
    }
  }

  /** The back-offs that there are, for {@link remember} in another life. */
  delays(): RememberedDelay[] {
    this.#followJump();
    return [...this.#delays.values()];
  }

  /** Notes the exits of a new observation and forgets those of containers that are gone. */
  observe(status: PodStatus): void {
    const exits = new Map<ContainerId, number>();
    for (const container of status.containers) {
      if (container.state !== "exited") continue;
      exits.set(container.id, this.#exits.get(container.id) ?? this.#firstSeen(container));
    }
    this.#exits = exits;
    const ids = new Set<string>(status.containers.map(({ id }) => id));
    for (const id of this.#startOvers) if (!ids.has(id)) this.#startOvers.delete(id);
    for (const id of this.#stopped.keys()) if (!ids.has(id)) this.#stopped.delete(id);
  }

  /** Notes that podwright stops this instance in order to restart it, whatever its exit code will be. */
  stopped(id: ContainerId, cause: Cause): void {
    this.#stopped.set(id, cause);
  }

  /** Why podwright stopped this instance in order to restart it; undefined when it did not. */
  restartCause(exited: ContainerStatus): Cause | undefined {
    return this.#stopped.get(exited.id);
  }

  /** True when the start-over of the pod for which this exit asks has begun, also in an earlier life. */
  startsOver(exited: ContainerStatus): boolean {
    return this.#startOvers.has(exited.id);
  }

  /** Monotonic ms at which the back-off after this exit ends; undefined: there is none. */
  endsAt(container: Container, exited: ContainerStatus): number | undefined {
    return this.#backOff.endsAt(key(container), this.#exitOf(exited));
  }

  /** The container's present back-off: how long it waits after an exit, in ms; 0 when it has none. */
  delayMs(container: Container): number {
    return this.#backOff.get(key(container));
  }

  /**
   * Notes that a container is being started, as was decided upon `before`: after an exit it is a restart, and the next
   * exit waits longer, whatever becomes of this one. What is only planned counts for nothing.
   */
  attempted(container: Container, before: PodStatus): void {
    const exited = findContainer(before, container.name);
    if (exited?.state === "exited") this.#grow(key(container), this.#exitOf(exited));
  }

  /** Notes what is stopped now because of these actions. */
  acting({ containersToKill, resize, restartAll }: PodActions): void {
    for (const { container, cause, restarts } of containersToKill) {
      if (restarts === true) this.stopped(container.id, cause);
    }
    for (const { kill } of resize?.restarts ?? []) this.stopped(kill.container.id, kill.cause);
    // What is tried once more of a start-over that has begun is that one still.
    if (restartAll === undefined || this.#startOvers.has(restartAll.source.id)) return;
    const { container, source } = restartAll;
    this.#startOvers.add(source.id);
    this.#grow(key(container), this.#exitOf(source), source.id);
  }

  /** Notes that a sandbox is made. Where it replaces another one and is lost soon, its successor waits. */
  sandboxMade(before: PodStatus): void {
    if (before.sandboxes.length > 0) this.#grow(sandboxKey, this.#clock.monotonic());
  }

  /** Monotonic ms before which no sandbox is made again; undefined: at once. */
  sandboxEndsAt(): number | undefined {
    return this.#backOff.endsAtSinceUpdate(sandboxKey, this.#clock.monotonic());
  }

  #grow(name: string, eventMs: number, startsOver?: ContainerId): void {
    this.#backOff.next(name, eventMs, this.#clock.monotonic());
    const delayMs = this.#backOff.get(name);
    this.#followJump();
    this.#delays.set(name, { key: name, delayMs, updatedAt: this.#clock.now(), startsOver });
  }

  /** Dates the delays anew where the wall clock was set since they were dated. */
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

/** An image or resize change starts the back-off over, as upstream's key has it; the order of what is asked for does not. */
function key({ name, image, resources = {} }: Container): string {
  const amounts = (list: ResourceRequirements["limits"] = {}): unknown =>
    Object.entries(list).toSorted(([a], [b]) => a.localeCompare(b));
  return JSON.stringify([name, image, amounts(resources.limits), amounts(resources.requests)]);
}
