/**
 * The behaviour of a simulated container's process, encoded in its command: `sim run`, `sim exit CODE AFTER_MS`, `…
 * deaf`, `… polite`.
 */
export interface Behaviour {
  /** Exits by itself after this time; undefined: runs until it is stopped. */
  readonly exitAfterMs: number | undefined;
  readonly exitCode: number;
  /** Ignores its stop signal: only SIGKILL ends it. */
  readonly deaf: boolean;
  /** Exits with 0 on its stop signal. */
  readonly polite?: boolean;
  /** The runtime can create but not start it (no such program). */
  readonly unstartable: boolean;
  /** Writes enough log output for rotations. */
  readonly chatty?: boolean;
}

export function behaviourCommand(behaviour: Behaviour): string[] {
  const words =
    behaviour.exitAfterMs === undefined ? ["run"] : ["exit", String(behaviour.exitCode), String(behaviour.exitAfterMs)];
  const marks = (["deaf", "polite", "unstartable", "chatty"] as const).filter((mark) => behaviour[mark] === true);
  return ["sim", ...words, ...marks];
}

export function parseBehaviour(command: readonly string[]): Behaviour {
  const ends = command[1] === "exit";
  return {
    exitAfterMs: ends ? Number(command[3]) : undefined,
    exitCode: ends ? Number(command[2]) : 0,
    deaf: command.includes("deaf"),
    polite: command.includes("polite"),
    unstartable: command.includes("unstartable"),
    chatty: command.includes("chatty"),
  };
}

/** The behaviour of a simulated hook, encoded in its command: `sim hook preStop CODE AFTER_MS`. */
export interface HookBehaviour {
  readonly kind: "postStart" | "preStop";
  readonly exitCode: number;
  readonly durationMs: number;
}

export function hookCommand({ kind, exitCode, durationMs }: HookBehaviour): string[] {
  return ["sim", "hook", kind, String(exitCode), String(durationMs)];
}

/** Undefined for a command that is not a hook's. */
export function parseHook(command: readonly string[]): HookBehaviour | undefined {
  const [, word, kind, exitCode, durationMs] = command;
  if (word !== "hook" || (kind !== "postStart" && kind !== "preStop")) return undefined;
  return { kind, exitCode: Number(exitCode), durationMs: Number(durationMs) };
}
