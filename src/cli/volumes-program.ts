import { Argument } from "commander";
import type { Define } from "./define-commands.ts";
import type { MachineContext } from "./machine-context.ts";
import { jsonOption, stateOption } from "./shared-options.ts";
import type { StateOptions } from "./context.ts";
import type { VolumesOptions } from "./volumes.ts";

/** The command about what outlives pods. */
export function addVolumes({ program, run }: Define<MachineContext>): void {
  program
    .command("volumes")
    .summary("list the claims of 'podwright run', and show, remove or copy one")
    .description(
      "Lists the PersistentVolumeClaims that 'podwright run' keeps: their size, where their data is and which pods use " +
        "them, and the PersistentVolumes that no claim has. inspect shows one with its volume, rm removes it with its data, copy-out copies its data to a new " +
        "directory or a tar archive (NAME.tar, NAME.tar.gz). All of that also works while no pod runs.",
    )
    .addArgument(new Argument("[action]", "default: ls").choices(["ls", "inspect", "rm", "copy-out"]).default("ls"))
    .argument("[claim...]", "its name or namespace/name; for copy-out followed by the destination")
    .option("--force", "remove without a question; never what a pod uses")
    .addOption(jsonOption())
    .addOption(stateOption())
    .addHelpText(
      "after",
      "\n  podwright volumes\n  podwright volumes copy-out data backup.tar.gz\n  podwright volumes rm --force data",
    )
    .action(
      run<VolumesOptions & StateOptions>(async (context, options, operands) => {
        return (await import("./volumes.ts")).volumesCommand(context, operands, options);
      }),
    );
}
