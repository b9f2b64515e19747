import { Argument, type Command } from "commander";
import { ExitCode } from "../base/errors.ts";
import type { Shell } from "./completion-scripts.ts";
import type { Terminal } from "./terminal.ts";

/** `podwright completion`, and the hidden command that its scripts call. */
export function addCompletion(program: Command, terminal: Terminal, setExitCode: (code: number) => void): void {
  program
    .command("completion")
    .summary("print a shell's completion script")
    .description("Prints a script that completes commands, options, and names of pods and containers.")
    .addArgument(new Argument("<shell>").choices(["bash", "zsh", "fish"]))
    .addHelpText(
      "after",
      "\n  source <(podwright completion bash)\n  podwright completion fish > ~/.config/fish/completions/podwright.fish",
    )
    .action(async (shell: Shell) => {
      const { completionScripts } = await import("./completion-scripts.ts");
      terminal.print(completionScripts[shell].trimEnd());
      setExitCode(ExitCode.done);
    });
  program
    .command("complete", { hidden: true })
    .description("Prints completions, one per line, each with a tab and its meaning.")
    .argument("[word...]")
    .action(async (words: readonly string[]) => {
      const { completeCommand } = await import("./complete-command.ts");
      await completeCommand(terminal, program, words);
      setExitCode(ExitCode.done);
    });
}
