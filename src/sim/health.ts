import type { ProbeType } from "../prober/probe-spec.ts";

/** When a simulated server is unhealthy, counted from its container's start, periodically; and how that shows. */
export interface Sickness {
  readonly afterMs: number;
  readonly untilMs: number;
  readonly cycleMs: number;
  readonly manner: "hangs" | "errs" | "refuses";
}

/** Identifies a server and the times when it is unhealthy. */
export interface Health extends Sickness {
  readonly uid: string;
  readonly container: string;
  readonly type: ProbeType;
}

/** The health path of a simulated server: it encodes the server's identity and {@link Sickness}. */
export function healthPath(uid: string, container: string, type: ProbeType, sickness: Sickness | undefined): string {
  const { afterMs, untilMs, cycleMs, manner } = sickness ?? { afterMs: 0, untilMs: 0, cycleMs: 1, manner: "errs" };
  return `/health/${[uid, container, type, afterMs, untilMs, cycleMs, manner].join("/")}`;
}

/** Undefined for a path of no simulated server. */
export function parseHealth(path: string): Health | undefined {
  const [, word, uid = "", container = "", type, afterMs, untilMs, cycleMs, manner] = path.split("/");
  if (word !== "health") return undefined;
  return {
    uid,
    container,
    type: type as ProbeType,
    afterMs: Number(afterMs),
    untilMs: Number(untilMs),
    cycleMs: Number(cycleMs),
    manner: manner as Sickness["manner"],
  };
}

/** An exec probe's command for the same check. */
export function healthCommand(path: string): string[] {
  return ["sim", "health", path];
}

/** Whether a server is healthy at this age. */
export function isWell({ afterMs, untilMs, cycleMs }: Sickness, aliveMs: number): boolean {
  const phaseMs = aliveMs % cycleMs;
  return phaseMs < afterMs || phaseMs >= untilMs;
}

/** Whether it is ever unhealthy. */
export function isSickAtTimes({ afterMs, untilMs }: Sickness): boolean {
  return untilMs > afterMs;
}
