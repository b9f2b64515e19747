import type { Command } from "commander";
import type { CommandContext, StateOptions } from "./context.ts";
import type { EvictOptions } from "./evict.ts";
import { jsonOption, stateOption } from "./shared-options.ts";

type Work<O> = (context: CommandContext, options: O, operands: readonly string[]) => Promise<number>;
type Action = (...given: unknown[]) => Promise<void>;

interface Define {
  readonly program: Command;
  /** Opens the context of the given state directory for the command. */
  readonly run: <O extends StateOptions>(work: Work<O>) => Action;
}

/** The commands about what a node does to itself. */
export function addUpkeepCommands(define: Define): void {
  addEvict(define);
}

function addEvict({ program, run }: Define): void {
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
