import { Option } from "commander";
import type { StateOptions } from "./context.ts";
import type { Define } from "./define-commands.ts";
import type { ExecOptions } from "./exec.ts";
import type { MachineContext } from "./machine-context.ts";
import { parseAddresses } from "./options.ts";
import type { PortForwardOptions } from "./port-forward.ts";
import { podArgument, stateOption } from "./shared-options.ts";

const containerOption = (): Option => {
  return new Option(
    "-c, --container <name>",
    "default: that of the annotation kubectl.kubernetes.io/default-container, or the first",
  );
};

/** The commands that connect with a pod's processes and ports. */
export function addRemoteCommands(define: Define<MachineContext>): void {
  addExec(define);
  addAttach(define);
  addPortForward(define);
}

function addExec({ program, run }: Define<MachineContext>): void {
  program
    .command("exec")
    .summary("run a command in a container of a running pod")
    .description("Runs a command in a running container, and exits with its exit code.")
    .addArgument(podArgument())
    .argument("[command...]", "after --")
    .addOption(containerOption())
    .option("-i, --stdin", "pass stdin to the command")
    .option("-t, --tty", "with -i: allocate a TTY")
    .addOption(stateOption())
    .addHelpText("after", "\n  podwright exec -it web -- sh\n  podwright exec web -c app -- cat /etc/hosts")
    .action(
      run<ExecOptions & StateOptions>(async (context, options, [pod = "", ...command]) => {
        return (await import("./machine-commands.ts")).execCommand(context, pod, command, options);
      }),
    );
}

function addAttach({ program, run }: Define<MachineContext>): void {
  program
    .command("attach")
    .summary("attach to the process of a container")
    .description("Shows the output of a container's process from now on; with -i it passes stdin to the process.")
    .addArgument(podArgument())
    .addOption(containerOption())
    .option("-i, --stdin", "pass stdin to the container, which must have stdin: true")
    .option("-t, --tty", "with -i: stdin is a TTY; the container must have tty: true")
    .addOption(stateOption())
    .addHelpText("after", "\n  podwright attach web\n  podwright attach -it shell")
    .action(
      run<ExecOptions & StateOptions>(async (context, options, [pod = ""]) => {
        return (await import("./machine-commands.ts")).attachCommand(context, pod, options);
      }),
    );
}

function addPortForward({ program, run }: Define<MachineContext>): void {
  program
    .command("port-forward")
    .summary("forward local ports to a pod")
    .description("Forwards ports of this machine to ports of a pod until Ctrl-C. Connections can be concurrent.")
    .addArgument(podArgument())
    .argument("<port...>", "REMOTE, LOCAL:REMOTE, or :REMOTE for a free local one; REMOTE may be a port's name")
    .addOption(
      new Option("--address <addresses>", "addresses to listen on, comma-separated")
        .default("localhost")
        .argParser(parseAddresses),
    )
    .addOption(stateOption())
    .addHelpText("after", "\n  podwright port-forward web 8080:80\n  podwright port-forward web :80 5432")
    .action(
      run<PortForwardOptions & StateOptions>(async (context, options, [pod = "", ...ports]) => {
        return (await import("./machine-commands.ts")).portForwardCommand(context, pod, ports, options);
      }),
    );
}
