import type { Pod } from "../api/pod.ts";
import { afterExit } from "../api/restart-policy.ts";
import type { Cause } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import { gracePeriodSeconds } from "../runtime/actions/grace.ts";
import { findContainer, type PodStatus } from "../runtime/status/pod-status.ts";
import type { Ending } from "./ending.ts";

/** In upstream's words. */
export const deadlineExceeded: Cause = {
  code: "DeadlineExceeded",
  message: "Pod was active on the node longer than the specified deadline",
};

/** The pod's time is up. */
export function overdue(pod: Pod): Ending {
  return { cause: deadlineExceeded, outcome: "failed", lasts: true, graceSeconds: gracePeriodSeconds(pod) };
}

/**
 * When a pod has been on the node for longer than its `spec.activeDeadlineSeconds`.
 *
 * The time counts from the first sight of the pod, status.startTime. One that ran before this life of podwright, which
 * remembers nothing of it, was seen first when the oldest that the runtime still has of it was made. The runtime's wall clock is read once and moved to the monotonic
 * one, so that a later jump neither ends a pod nor lets it live on. A pod that had ended in time by then stays ended as
 * it did.
 */
export class ActiveDeadline {
  readonly #clock: Clock;
  #startedMs: number;
  #startedAt: number | undefined;
  /** Whether the pod had come to its end by itself when it was first looked at; undefined before that. */
  #hadEnded: boolean | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedMs = clock.monotonic();
  }

  /** When the pod was first seen: wall clock, milliseconds since the epoch; undefined before the first look at it. */
  get startedAt(): number | undefined {
    return this.#startedAt;
  }

  /** Takes up what an earlier life knew of {@link startedAt}. */
  remember(startedAt: number): void {
    this.#startedAt = startedAt;
    this.#startedMs = this.#clock.monotonic() - Math.max(0, this.#clock.now() - startedAt);
  }

  /**
   * Monotonic ms of the pod's deadline; undefined: it has none.
   * @param status the pod as it is now; what the first one shows tells how old the pod is
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

  /** The same by what the first look at the pod showed, without looking. */
  lastKnown(pod: Pod): number | undefined {
    const seconds = pod.spec.activeDeadlineSeconds;
    return seconds === undefined || this.#hadEnded === true ? undefined : this.#startedMs + seconds * 1000;
  }
}

/** Every container has run to an end after which its policy does nothing more. Pure. */
function hasEnded(pod: Pod, status: PodStatus): boolean {
  return pod.spec.containers.every((container) => {
    const last = findContainer(status, container.name);
    return last?.state === "exited" && afterExit(pod, container, last.exitCode) === "stay";
  });
}

/** How long ago the oldest that the runtime has of a pod was made; 0 for what it does not know. Pure. */
export function ageMs({ sandboxes, containers }: PodStatus, nowMs: number): number {
  const times = [...sandboxes, ...containers].map(({ createdAt }) => createdAt).filter((time) => time > 0n);
  const ages = times.map((time) => nowMs - Number(time / 1_000_000n));
  return Math.max(0, ...ages);
}
