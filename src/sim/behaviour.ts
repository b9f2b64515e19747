/** What a simulated container's process does, as its command says: `sim run`, `sim exit CODE AFTER_MS`, `… deaf`. */
export interface Behaviour {
  /** Ends by itself after so many ms; undefined: runs until it is stopped. */
  readonly exitAfterMs: number | undefined;
  readonly exitCode: number;
  /** Ignores its stop signal: only SIGKILL ends it. */
  readonly deaf: boolean;
  /** The runtime can create it but not start it (no such program). */
  readonly unstartable: boolean;
}

export function behaviourCommand(behaviour: Behaviour): string[] {
  const words =
    behaviour.exitAfterMs === undefined ? ["run"] : ["exit", String(behaviour.exitCode), String(behaviour.exitAfterMs)];
  return ["sim", ...words, ...(behaviour.deaf ? ["deaf"] : []), ...(behaviour.unstartable ? ["unstartable"] : [])];
}

/** What a simulated lifecycle hook does, as its command says: `sim hook preStop CODE AFTER_MS`. */
export interface HookBehaviour {
  readonly kind: "postStart" | "preStop";
  readonly exitCode: number;
  readonly durationMs: number;
}

export function hookCommand({ kind, exitCode, durationMs }: HookBehaviour): string[] {
  return ["sim", "hook", kind, String(exitCode), String(durationMs)];
}

/** Undefined for a command that is no hook's. */
export function parseHook(command: readonly string[]): HookBehaviour | undefined {
  const [, word, kind, exitCode, durationMs] = command;
  if (word !== "hook" || (kind !== "postStart" && kind !== "preStop")) return undefined;
  return { kind, exitCode: Number(exitCode), durationMs: Number(durationMs) };
}

export function parseBehaviour(command: readonly string[]): Behaviour {
  const ends = command[1] === "exit";
  return {
    exitAfterMs: ends ? Number(command[3]) : undefined,
    exitCode: ends ? Number(command[2]) : 0,
    deaf: command.includes("deaf"),
    unstartable: command.includes("unstartable"),
  };
}
