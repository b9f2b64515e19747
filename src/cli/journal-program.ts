import type { CommandContext } from "./context.ts";
import type { Define } from "./define-commands.ts";
import { jsonOption, type JsonOptions, podArgument, stateOption } from "./shared-options.ts";

/** The commands that show a pod's journal. */
export function addJournalCommands(define: Define<CommandContext>): void {
  addWhy(define);
  addTimeline(define);
  addBlame(define);
}

function addWhy({ program, run }: Define<CommandContext>): void {
  program
    .command("why")
    .summary("explain the state of a pod")
    .description("Shows the last event of the pod and of each container, its causes, and what comes next.")
    .addArgument(podArgument())
    .addOption(jsonOption())
    .addOption(stateOption())
    .addHelpText("after", "\n  podwright why crash")
    .action(
      run<JsonOptions>(async (context, options, [pod = ""]) => {
        return (await import("./ask-commands.ts")).whyCommand(context, pod, options);
      }),
    );
}

function addTimeline({ program, run }: Define<CommandContext>): void {
  program
    .command("timeline")
    .summary("show a pod's history")
    .description(
      "Shows everything that happened to the pod, in order, across restarts of podwright; also of removed pods.",
    )
    .addArgument(podArgument())
    .addOption(jsonOption())
    .addOption(stateOption())
    .addHelpText("after", "\n  podwright timeline hello")
    .action(
      run<JsonOptions>(async (context, options, [pod = ""]) => {
        return (await import("./ask-commands.ts")).timelineCommand(context, pod, options);
      }),
    );
}

function addBlame({ program, run }: Define<CommandContext>): void {
  program
    .command("blame")
    .summary("show what a pod's start-up time was spent on")
    .description(
      "Shows each phase of the start-up with its duration, until the pod was first ready; marks the critical chain.",
    )
    .addArgument(podArgument())
    .addOption(jsonOption())
    .addOption(stateOption())
    .addHelpText("after", "\n  podwright blame hello")
    .action(
      run<JsonOptions>(async (context, options, [pod = ""]) => {
        return (await import("./ask-commands.ts")).blameCommand(context, pod, options);
      }),
    );
}
