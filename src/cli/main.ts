import { CommanderError } from "commander";
import { ExitCode } from "../base/errors.ts";
import { exitCodeOf, printError } from "./error-output.ts";
import { buildProgram } from "./program.ts";
import { Terminal } from "./terminal.ts";

/** Runs one command line to its exit code. Never rejects. */
async function main(arguments_: readonly string[]): Promise<number> {
  using terminal = new Terminal(process.stdout, process.stderr, process.env);
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      terminal.close();
      // A reader that went away (`| head`) is no error of the command's; a full disk is.
      if (error.code !== "EPIPE") process.exitCode = ExitCode.failed;
    });
  }
  const debug = process.env["PODWRIGHT_DEBUG"] === "1";
  let exitCode: number = ExitCode.done;
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

const exitCode = await main(process.argv.slice(2));
// Writing may have failed meanwhile.
process.exitCode ||= exitCode;
