import type { StateOptions } from "./context.ts";
import type { Define } from "./define-commands.ts";
import type { JoinOptions } from "./join.ts";
import type { DisableOptions, EnableOptions } from "./service-commands.ts";
import type { MachineContext } from "./machine-context.ts";

/** The commands that change this machine's services. */
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
        "running when the service is stopped, restarted or upgraded. Later changes in that directory take effect " +
        "immediately.",
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
      "Removes manifests from /etc/podwright/manifests (without names: all of them) and stops their pods. Removes the " +
        "service with the last manifest.",
    )
    .argument("[file...]", "names of manifests in /etc/podwright/manifests, or directories that were enabled")
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
      "Makes kubelet.service start podwright, with its present flags and files, after the checks of 'podwright doctor " +
        "--kubelet'. Containers keep running, and 'podwright leave' undoes it.",
    )
    .option("--from-kubeadm", "the node was set up by kubeadm, or otherwise has a kubelet.service")
    .option("--dry-run", "only print what would be done")
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
    .summary("undo 'podwright join'")
    .description("Makes kubelet.service start the earlier kubelet again. Containers keep running.")
    .action(
      run<StateOptions>(async (context) => {
        const { leaveCommand, systemPlaces } = await import("./service-commands.ts");
        return leaveCommand(context, systemPlaces());
      }),
    );
}
