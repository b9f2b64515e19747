import type { Pod } from "../api/pod.ts";
import { afterExit } from "../api/restart-policy.ts";
import type { Cause } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import { gracePeriodSeconds } from "../runtime/actions/grace.ts";
import { findContainer, type PodStatus } from "../runtime/status/pod-status.ts";
import type { Ending } from "./ending.ts";

/** Upstream's message. */
export const deadlineExceeded: Cause = {
  code: "DeadlineExceeded",
  message: "Pod was active on the node longer than the specified deadline",
};

/** The pod has exceeded its activeDeadlineSeconds. */
export function overdue(pod: Pod): Ending {
  return { cause: deadlineExceeded, outcome: "failed", lasts: true, graceSeconds: gracePeriodSeconds(pod) };
}

/**
 * Decides when a pod has been on the node for longer than its `spec.activeDeadlineSeconds`.
 *
 * The time counts from the pod's first sight, which is status.startTime, except for a static pod of a node in no cluster
 * that an earlier run has seen. Without a checkpoint of that, the pod counts from the creation of the oldest sandbox or
 * container that the runtime still has. Runtime timestamps are converted to the monotonic clock once, so a later clock
 * jump neither ends a pod nor prolongs it. A pod that had already ended before its deadline stays as it ended.
 */
export class ActiveDeadline {
  readonly #clock: Clock;
  #startedMs: number;
  #startedAt: number | undefined;
  /** Whether the pod had ended by itself at its first observation; undefined before that. */
  #hadEnded: boolean | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedMs = clock.monotonic();
  }

  /** When the pod was first seen: wall clock, milliseconds since the epoch; undefined before the first observation. */
  get startedAt(): number | undefined {
    return this.#startedAt;
  }

  /** Restores {@link startedAt} from an earlier run. */
  remember(startedAt: number): void {
    this.#startedAt = startedAt;
    this.#startedMs = this.#clock.monotonic() - Math.max(0, this.#clock.now() - startedAt);
  }

  /**
   * Monotonic ms of the pod's deadline; undefined: it has none.
   * @param status the pod's current status; the first one determines the pod's age
   */
  endsAt(pod: Pod, status: PodStatus): number | undefined {
    this.#hadEnded ??= hasEnded(pod, status);
    if (this.#startedAt === undefined) {
      const [now, monotonic] = [this.#clock.now(), this.#clock.monotonic()];
      this.#startedMs = Math.min(this.#startedMs, monotonic - ageMs(status, now));
      this.#startedAt = Math.round(now - (monotonic - this.#startedMs));
    }
    return this.lastKnown(pod);
  }

  /** The pod's ending when its time is over; until then the schedule gets a look for when it will be. */
  due(pod: Pod, status: PodStatus, schedule: { by(atMs: number, cause: Cause): void }): Ending | undefined {
    const endsAtMs = this.endsAt(pod, status);
    if (endsAtMs === undefined) return undefined;
    if (endsAtMs <= this.#clock.monotonic()) return overdue(pod);
    schedule.by(endsAtMs, deadlineExceeded);
    return undefined;
  }

  /** The same, based on the first observation. */
  lastKnown(pod: Pod): number | undefined {
    const seconds = pod.spec.activeDeadlineSeconds;
    return seconds === undefined || this.#hadEnded === true ? undefined : this.#startedMs + seconds * 1000;
  }
}

/** Every container has terminated and its restart policy does not restart it. Pure. */
function hasEnded(pod: Pod, status: PodStatus): boolean {
  return pod.spec.containers.every((container) => {
    const last = findContainer(status, container.name);
    return last?.state === "exited" && afterExit(pod, container, last.exitCode) === "stay";
  });
}

/** Age of the pod's oldest sandbox or container in the runtime; 0 if unknown. Pure. */
export function ageMs({ sandboxes, containers }: PodStatus, nowMs: number): number {
  const times = [...sandboxes, ...containers].map(({ createdAt }) => createdAt).filter((time) => time > 0n);
  const ages = times.map((time) => nowMs - Number(time / 1_000_000n));
  return Math.max(0, ...ages);
}
