import { spawn } from "node:child_process";
import { once } from "node:events";
import { PassThrough } from "node:stream";
import { eitherSignal, onAbort } from "../../base/abort.ts";
import { DeadlineError } from "../../base/deadline.ts";
import type { CommandOutputOptions } from "../../ports/command-output.ts";
import { systemClock } from "./clock.ts";

/** Runs programs of this machine in their own session, without a shell and without input. */
export async function* systemCommandOutput(
  program: string,
  arguments_: readonly string[],
  options: CommandOutputOptions,
): AsyncGenerator<Uint8Array> {
  options.signal.throwIfAborted();
  const late = new AbortController();
  using _deadline = systemClock.timer(`${program} to end`, options.timeoutMs, () => {
    late.abort(new DeadlineError(`running ${program}`, options.timeoutMs));
  });
  using either = eitherSignal(options.signal, late.signal);
  const child = spawn(program, arguments_, { detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const output = new PassThrough();
  let open = 2;
  for (const stream of [child.stdout, child.stderr]) {
    stream.pipe(output, { end: false });
    stream.once("close", () => --open === 0 && output.end());
  }
  child.once("error", (error) => {
    output.destroy(new Error(`cannot run ${program}: ${error.message}`, { cause: error }));
  });
  using _signal = onAbort(either.signal, () => output.destroy(either.signal.reason as Error));
  try {
    for await (const chunk of output) yield chunk as Uint8Array;
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  } finally {
    if (child.pid !== undefined && child.exitCode === null) kill(child.pid);
  }
}

/** Kills the program and its children: it leads a session. */
function kill(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has exited by itself.
  }
}
