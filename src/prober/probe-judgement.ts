import type { ProbeTimes, ProbeType } from "./probe-spec.ts";

/** A probe type's verdict on a container. unknown: none yet. */
export type ProbeResult = "success" | "failure" | "unknown";

/** Consecutive outcomes of the same kind. */
export interface Streak {
  readonly outcome: "success" | "failure" | undefined;
  readonly length: number;
}

export const noStreak: Streak = { outcome: undefined, length: 0 };

/** Before the first verdict: a container is alive until shown otherwise, and ready only once shown. */
export function initialResult(type: ProbeType): ProbeResult {
  switch (type) {
    case "liveness":
      return "success";
    case "readiness":
      return "failure";
    case "startup":
      return "unknown";
  }
}

/**
 * Adds one outcome. There is a verdict once the threshold of consecutive outcomes of a kind is reached, and with each
 * further one.
 */
export function judge(
  streak: Streak,
  outcome: "success" | "failure",
  times: Pick<ProbeTimes, "successThreshold" | "failureThreshold">,
): { readonly streak: Streak; readonly verdict: "success" | "failure" | undefined } {
  const length = streak.outcome === outcome ? streak.length + 1 : 1;
  const threshold = outcome === "success" ? times.successThreshold : times.failureThreshold;
  return { streak: { outcome, length }, verdict: length >= threshold ? outcome : undefined };
}

/**
 * True when the verdict is final for this instance: it has started, or it will be killed. Probing resumes with the next
 * instance.
 */
export function isFinal(type: ProbeType, verdict: "success" | "failure"): boolean {
  return type === "startup" || (type === "liveness" && verdict === "failure");
}

/** The facts that decide whether a container is probed now. */
export interface Gate {
  readonly running: boolean;
  /** Its startup probe has succeeded, or it has none. */
  readonly started: boolean;
  /** A final verdict was given ({@link isFinal}). */
  readonly settled: boolean;
  /** The pod is being stopped. */
  readonly ending: boolean;
}

/**
 * Startup probes run until the container has started, the others from then on; in a stopping pod only readiness probes
 * run.
 */
export function mayProbe(type: ProbeType, { running, started, settled, ending }: Gate): boolean {
  if (!running || settled) return false;
  if (type === "readiness") return started;
  if (ending) return false;
  return type === "startup" ? !started : started;
}

/** Times on the monotonic clock, ms. */
export interface FirstProbe {
  readonly nowMs: number;
  /** When the container started. */
  readonly containerStartMs: number;
  /** When podwright did. */
  readonly ownStartMs: number;
  /** Uniform in [0, 1). */
  readonly draw: number;
}

/**
 * When an instance is first probed: immediately, but not before its initial delay. After a restart of podwright, the
 * probes of running containers are spread over their period.
 */
export function firstProbeMs(
  times: Pick<ProbeTimes, "initialDelayMs" | "periodMs">,
  { nowMs, containerStartMs, ownStartMs, draw }: FirstProbe,
): number {
  const adopted = containerStartMs < ownStartMs && nowMs - ownStartMs < times.periodMs;
  const spreadMs = adopted ? draw * times.periodMs : 0;
  return Math.max(nowMs + spreadMs, containerStartMs + times.initialDelayMs);
}

/**
 * Probes are repeated at multiples of this. Probes of many containers then share one wake-up of the process, and so do
 * their responses, which halves their cost.
 */
const gridMs = 50;

/**
 * When to probe next: a period after the last one was due, or immediately if that has passed; a delay is never caught
 * up twice.
 */
export function nextProbeMs(times: Pick<ProbeTimes, "periodMs">, lastDueMs: number, nowMs: number): number {
  return Math.ceil(Math.max(lastDueMs + times.periodMs, nowMs) / gridMs) * gridMs;
}
