import type { StateOptions } from "./context.ts";
import type { Define } from "./define-commands.ts";
import type { JoinOptions } from "./join.ts";
import type { DisableOptions, EnableOptions } from "./service-commands.ts";
import type { MachineContext } from "./machine-context.ts";

/** The commands that change which services of this machine are podwright. */
export function addServiceCommands(define: Define<MachineContext>): void {
  addEnable(define);
  addDisable(define);
  addJoin(define);
  addLeave(define);
}

function addEnable({ program, run }: Define<MachineContext>): void {
  program
    .command("enable")
    .summary("run pods now and after each boot")
    .description(
      "Copies manifests to /etc/podwright/manifests and runs them as podwright.service, now and after each boot. Pods keep " +
        "running when the service is stopped, restarted or upgraded. Files that are put into that directory later, " +
        "changed or removed count at once.",
    )
    .argument("[file...]", "manifest files or directories")
    .option("--kubelet <config>", "instead: run 'podwright kubelet --config CONFIG' as podwright-kubelet.service")
    .addHelpText(
      "after",
      "\n  podwright enable web.yaml\n  podwright enable /etc/podwright/manifests\n  systemctl status podwright",
    )
    .action(
      run<EnableOptions>(async (context, options, files) => {
        return (await import("./service-commands.ts")).enable(context, files, options);
      }),
    );
}

function addDisable({ program, run }: Define<MachineContext>): void {
  program
    .command("disable")
    .summary("undo 'podwright enable'")
    .description(
      "Removes manifests from /etc/podwright/manifests, without names all of them, and stops their pods. With the last one " +
        "the service goes.",
    )
    .argument("[file...]", "names of manifests in /etc/podwright/manifests")
    .option("--kubelet", "instead: stop podwright-kubelet.service and remove it; its pods keep running")
    .addHelpText("after", "\n  podwright disable web.yaml\n  podwright disable")
    .action(
      run<DisableOptions>(async (context, options, files) => {
        return (await import("./service-commands.ts")).disable(context, files, options);
      }),
    );
}

function addJoin({ program, run }: Define<MachineContext>): void {
  program
    .command("join")
    .summary("become the kubelet of this node")
    .description(
      "Has kubelet.service start podwright instead, with the flags and files that it has now, after a look at what would " +
        "be different. Containers run on, and 'podwright leave' gives the node back.",
    )
    .option("--from-kubeadm", "a node that kubeadm has joined, or any with a kubelet.service")
    .option("--dry-run", "only say what would be done")
    .addHelpText("after", "\n  podwright doctor --kubelet\n  podwright join --from-kubeadm")
    .action(
      run<JoinOptions & StateOptions>(async (context, options) => {
        const { joinCommand, systemPlaces } = await import("./service-commands.ts");
        return joinCommand(context, options, systemPlaces());
      }),
    );
}

function addLeave({ program, run }: Define<MachineContext>): void {
  program
    .command("leave")
    .summary("give the node back to the kubelet before")
    .description("Undoes 'podwright join': kubelet.service is the one before. Containers run on.")
    .action(
      run<StateOptions>(async (context) => {
        const { leaveCommand, systemPlaces } = await import("./service-commands.ts");
        return leaveCommand(context, systemPlaces());
      }),
    );
}
