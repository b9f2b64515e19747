import { type Command, Option } from "commander";
import type { StateOptions } from "./context.ts";
import type { ExecOptions } from "./exec.ts";
import type { MachineContext } from "./machine-context.ts";
import type { PortForwardOptions } from "./port-forward.ts";
import { podArgument, stateOption } from "./shared-options.ts";

type Work<O> = (context: MachineContext, options: O, operands: readonly string[]) => Promise<number>;
type Action = (...given: unknown[]) => Promise<void>;

interface Define {
  readonly program: Command;
  /** Opens the context of the state directory asked for and gives it to the command. */
  readonly run: <O extends StateOptions>(work: Work<O>) => Action;
}

const containerOption = (): Option => {
  return new Option(
    "-c, --container <name>",
    "default: that of the annotation kubectl.kubernetes.io/default-container, or the first",
  );
};

/** The commands that connect with what runs in a pod. */
export function addRemoteCommands(define: Define): void {
  addExec(define);
  addAttach(define);
  addPortForward(define);
}

function addExec({ program, run }: Define): void {
  program
    .command("exec")
    .summary("run a command in a container of a running pod")
    .description("Runs a command in a container that runs, and ends with its exit code.")
    .addArgument(podArgument())
    .argument("[command...]", "behind --")
    .addOption(containerOption())
    .option("-i, --stdin", "pass standard input on")
    .option("-t, --tty", "with -i: the command gets a terminal, this one")
    .addOption(stateOption())
    .addHelpText("after", "\n  podwright exec -it web -- sh\n  podwright exec web -c app -- cat /etc/hosts")
    .action(
      run<ExecOptions & StateOptions>(async (context, options, [pod = "", ...command]) => {
        return (await import("./machine-commands.ts")).execCommand(context, pod, command, options);
      }),
    );
}

function addAttach({ program, run }: Define): void {
  program
    .command("attach")
    .summary("connect with the process of a container")
    .description("Shows what a container's process writes from now on, and with -i passes standard input on to it.")
    .addArgument(podArgument())
    .addOption(containerOption())
    .option("-i, --stdin", "pass standard input on; the container must have stdin: true")
    .option("-t, --tty", "with -i: this terminal is the container's, which must have tty: true")
    .addOption(stateOption())
    .addHelpText("after", "\n  podwright attach web\n  podwright attach -it shell")
    .action(
      run<ExecOptions & StateOptions>(async (context, options, [pod = ""]) => {
        return (await import("./machine-commands.ts")).attachCommand(context, pod, options);
      }),
    );
}

function addPortForward({ program, run }: Define): void {
  program
    .command("port-forward")
    .summary("reach ports of a pod through ports of this machine")
    .description("Ports of this machine lead to ports of a pod until Ctrl-C. Several connections at once are fine.")
    .addArgument(podArgument())
    .argument("<port...>", "REMOTE, LOCAL:REMOTE, or :REMOTE for a free local one; REMOTE may be a port's name")
    .option("--address <addresses>", "where to listen, with commas", "localhost")
    .addOption(stateOption())
    .addHelpText("after", "\n  podwright port-forward web 8080:80\n  podwright port-forward web :80 5432")
    .action(
      run<PortForwardOptions & StateOptions>(async (context, options, [pod = "", ...ports]) => {
        return (await import("./machine-commands.ts")).portForwardCommand(context, pod, ports, options);
      }),
    );
}
