import { runCommandLine } from "../../src/cli/command-line.ts";
import { buildProgram } from "../../src/cli/program.ts";
import { type OutputStream, Terminal } from "../../src/cli/terminal.ts";
import type { CommandEnd } from "./command.ts";

/**
 * Runs a command line in this process, with the whole program.
 * @param until ends a command that stays once its output matches, as a closed pipe does
 */
export async function runHere(arguments_: readonly string[], until?: RegExp): Promise<CommandEnd> {
  const texts = { stdout: "", stderr: "" };
  const stream = (name: keyof typeof texts): OutputStream => ({
    write: (data) => {
      texts[name] += typeof data === "string" ? data : new TextDecoder().decode(data);
      if (until?.test(texts.stdout + texts.stderr) === true) setImmediate(() => terminal.close());
      return true;
    },
  });
  const terminal = new Terminal(stream("stdout"), stream("stderr"), {});
  const exitCode = await runCommandLine(terminal, arguments_, false);
  return { exitCode, ...texts };
}

/** The options in `--help`, by command; excluding commands that parse their own. */
export function shownOptions(): ReadonlyMap<string, readonly string[]> {
  const program = buildProgram(new Terminal({ write: () => true }, { write: () => true }, {}), () => {});
  const help = program.createHelp();
  const shown = help.visibleCommands(program).filter((command) => !["help", "kubelet"].includes(command.name()));
  return new Map(
    shown.map((command) => {
      const options = help
        .visibleOptions(command)
        .flatMap(({ long }) => (typeof long === "string" && long !== "--help" ? [long] : []));
      return [command.name(), options];
    }),
  );
}
