import type { CommandContext, StateOptions } from "./context.ts";
import type { Define } from "./define-commands.ts";
import type { EvictOptions } from "./evict.ts";
import type { GcOptions } from "./gc.ts";
import { jsonOption, type JsonOptions, podArgument, stateOption } from "./shared-options.ts";

/** The commands about what a node does by itself. */
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
      "Ends the waits of a pod: crash-loop back-off, back-off of image pulls, the pause after a start that failed. What " +
        "fails again waits longer than before.",
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
    .summary("remove images and dead containers that are of no use")
    .description(
      "Removes what the node would remove if it needed the room: images that no container uses and no pod wants, dead " +
        "containers and sandboxes. --preview only tells, and of what stays why.",
    )
    .option("--preview", "tell what would be removed, and remove nothing")
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
    .summary("tell whom the node would evict, or allow what waits for it")
    .description(
      "With --preview: in what order pods would be evicted, by what they use now, and why. With --confirm: allows " +
        "evictions by thresholds that the last start did not have, where the kubelet runs with --confirm-evictions.",
    )
    .option("--preview", "show the order; nothing is done")
    .option("--confirm", "allow what waits to be confirmed")
    .option("--signal <signal>", "what there would be too little of, e.g. memory.available or nodefs.available")
    .addOption(jsonOption())
    .addOption(stateOption())
    .addHelpText("after", "\n  podwright evict --preview\n  podwright evict --preview --signal nodefs.available")
    .action(
      run<EvictOptions & StateOptions>(async (context, options) => {
        return (await import("./ask-commands.ts")).evictCommand(context, options);
      }),
    );
}
