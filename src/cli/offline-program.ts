import type { Command } from "commander";
import { jsonOption } from "./shared-options.ts";
import type { Terminal } from "./terminal.ts";

/** `podwright explain`. */
export function addExplain(program: Command, terminal: Terminal, setExitCode: (code: number) => void): void {
  program
    .command("explain")
    .summary("explain names in the journal, statuses and errors")
    .description("Shows what each name means and what to do about it. Works without an engine.")
    .argument("[name...]", "e.g. BackOff, ErrImagePull or CriError, in any case; without one: all names")
    .addOption(jsonOption())
    .addHelpText("after", "\n  podwright explain CrashLoopBackOff")
    .action(async (names: readonly string[], options: { readonly json?: true }) => {
      const { explainCommand } = await import("./explain.ts");
      setExitCode(explainCommand(terminal, names, options));
    });
}

/** `podwright version`. */
export function addVersion(program: Command, terminal: Terminal, setExitCode: (code: number) => void): void {
  program
    .command("version")
    .summary("print the version")
    .addOption(jsonOption())
    .action(async (options: { readonly json?: true }) => {
      const { versionCommand } = await import("./ask-commands.ts");
      setExitCode(versionCommand(terminal, options));
    });
}
