import { CommanderError } from "commander";
import { ExitCode } from "../base/errors.ts";
import { exitCodeOf, printError } from "./error-output.ts";
import { buildProgram } from "./program.ts";
import { Terminal } from "./terminal.ts";

/** Runs one command line to its exit code. Never rejects. */
async function main(arguments_: readonly string[]): Promise<ExitCode> {
  using terminal = new Terminal(process.stdout, process.stderr, process.env);
  // A reader that went away (`| head`) is no error of the command's; node would end with a stack.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => terminal.close());
  const debug = process.env["PODWRIGHT_DEBUG"] === "1";
  let exitCode: ExitCode = ExitCode.done;
  try {
    const program = buildProgram(terminal, (code) => (exitCode = code));
    await program.parseAsync([...arguments_], { from: "user" });
  } catch (error) {
    // commander has told what was wrong, or printed the help that was asked for.
    if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.done : ExitCode.badInput;
    terminal.live([]);
    printError(terminal, error, debug);
    return exitCodeOf(error);
  }
  return exitCode;
}

process.exitCode = await main(process.argv.slice(2));
