import type { ProbeType } from "../prober/probe-spec.ts";

/** When a simulated server is sick, counted from its container's start, again and again; and how that shows. */
export interface Sickness {
  readonly afterMs: number;
  readonly untilMs: number;
  readonly cycleMs: number;
  readonly manner: "hangs" | "errs" | "refuses";
}

/** Whose health is asked for, and when it is sick. */
export interface Health extends Sickness {
  readonly uid: string;
  readonly container: string;
  readonly type: ProbeType;
}

/** The path of a simulated server's health: it says whose it is and when it is sick. */
export function healthPath(uid: string, container: string, type: ProbeType, sickness: Sickness | undefined): string {
  const { afterMs, untilMs, cycleMs, manner } = sickness ?? { afterMs: 0, untilMs: 0, cycleMs: 1, manner: "errs" };
  return `/health/${[uid, container, type, afterMs, untilMs, cycleMs, manner].join("/")}`;
}

/** Undefined for a path that no simulated server has. */
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

/** The command of an exec probe that asks the same. */
export function healthCommand(path: string): string[] {
  return ["sim", "health", path];
}

/** Whether a server that has run for so long is well. */
export function isWell({ afterMs, untilMs, cycleMs }: Sickness, aliveMs: number): boolean {
  const phaseMs = aliveMs % cycleMs;
  return phaseMs < afterMs || phaseMs >= untilMs;
}

/** Whether it is ever sick. */
export function isSickAtTimes({ afterMs, untilMs }: Sickness): boolean {
  return untilMs > afterMs;
}
