import type { CommandContext, StateOptions } from "./context.ts";
import type { Define } from "./define-commands.ts";
import type { EvictOptions } from "./evict.ts";
import type { GcOptions } from "./gc.ts";
import { jsonOption, type JsonOptions, podArgument, stateOption } from "./shared-options.ts";

/** The commands for a node's back-offs, garbage collection and evictions. */
export function addUpkeepCommands(define: Define<CommandContext>): void {
  addRetry(define);
  addGc(define);
  addEvict(define);
}

function addRetry({ program, run }: Define<CommandContext>): void {
  program
    .command("retry")
    .summary("end a pod's back-offs and retry at once")
    .description(
      "Ends a pod's back-offs after crashes, failed image pulls and failed starts. Another failure waits longer than before.",
    )
    .addArgument(podArgument())
    .addOption(jsonOption())
    .addOption(stateOption())
    .addHelpText("after", "\n  podwright retry crash")
    .action(
      run<JsonOptions>(async (context, options, [pod = ""]) => {
        return (await import("./ask-commands.ts")).retryCommand(context, pod, options);
      }),
    );
}

function addGc({ program, run }: Define<CommandContext>): void {
  program
    .command("gc")
    .summary("remove unused images and dead containers")
    .description(
      "Removes what the node would collect when it needs space: images that no container and no pod uses, dead containers " +
        "and sandboxes, and with them the logs of pods that ended. --preview shows it, with the reason for everything that stays.",
    )
    .option("--preview", "show what would be removed, and remove nothing")
    .addOption(jsonOption())
    .addOption(stateOption())
    .addHelpText("after", "\n  podwright gc --preview\n  podwright gc --state-dir /var/lib/kubelet/podwright")
    .action(
      run<StateOptions & GcOptions>(async (context, options) => {
        return (await import("./ask-commands.ts")).gcCommand(context, options);
      }),
    );
}

function addEvict({ program, run }: Define<CommandContext>): void {
  program
    .command("evict")
    .summary("show which pods the node would evict, or confirm evictions")
    .description(
      "With --preview: the order in which pods would be evicted, by their current usage, with reasons. With --confirm: " +
        "allows evictions by changed settings, if the kubelet runs with --confirm-evictions.",
    )
    .option("--preview", "show the order, and evict nothing")
    .option("--confirm", "allow evictions that wait for a confirmation")
    .option("--signal <signal>", "the eviction signal, e.g. nodefs.available; default: the most urgent")
    .addOption(jsonOption())
    .addOption(stateOption())
    .addHelpText("after", "\n  podwright evict --preview\n  podwright evict --preview --signal nodefs.available")
    .action(
      run<EvictOptions & StateOptions>(async (context, options) => {
        return (await import("./ask-commands.ts")).evictCommand(context, options);
      }),
    );
}
