import { CommanderError } from "commander";
import { ExitCode } from "../base/errors.ts";
import { exitCodeOf, printError } from "./error-output.ts";
import { buildProgram } from "./program.ts";
import type { Terminal } from "./terminal.ts";

/** Runs one command line to its exit code. Never rejects: problems are printed on the terminal. */
export async function runCommandLine(
  terminal: Terminal,
  arguments_: readonly string[],
  debug: boolean,
): Promise<number> {
  let exitCode: number = ExitCode.done;
  try {
    if (arguments_.length === 0 && terminal.interactive) {
      const { welcome } = await import("./manifest-commands.ts");
      return await welcome(terminal);
    }
    const program = buildProgram(terminal, (code) => (exitCode = code));
    await program.parseAsync([...arguments_], { from: "user" });
  } catch (error) {
    // Commander has already printed the problem, or the requested help.
    if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.done : ExitCode.badInput;
    terminal.live([]);
    printError(terminal, error, debug);
    return exitCodeOf(error);
  }
  return exitCode;
}
