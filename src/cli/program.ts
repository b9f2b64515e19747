import { version } from "../base/version.ts";
import { Command, Option } from "commander";
import { addCompletion } from "./completion-program.ts";
import type { CommandContext, StateOptions } from "./context.ts";
import type { EngineOptions } from "../agent/engine.ts";
import type { DebugOptions } from "./debug.ts";
import type { DoctorOptions } from "./doctor.ts";
import type { LogsOptions } from "./logs.ts";
import type { MachineContext } from "./machine-context.ts";
import { addExplain, addVersion } from "./offline-program.ts";
import { parseDuration, parseEndpoint, parsePort, parseSeconds, parseTail } from "./options.ts";
import type { PsOptions } from "./ps.ts";
import type { RunOptions } from "./run.ts";
import { addJournalCommands } from "./journal-program.ts";
import { addRemoteCommands } from "./remote-program.ts";
import { commandLineError } from "./error-output.ts";
import { jsonOption, type JsonOptions, podArgument, stateOption } from "./shared-options.ts";
import { addServiceCommands } from "./service-program.ts";
import type { StopOptions } from "./stop.ts";
import { addUpkeepCommands } from "./upkeep-program.ts";
import { addVolumes } from "./volumes-program.ts";
import type { UiOptions } from "./ui.ts";
import type { Terminal } from "./terminal.ts";

/** Defines the command line and its help. Each command's implementation is loaded when it is called. */
export function buildProgram(terminal: Terminal, setExitCode: (code: number) => void): Command {
  const program = new Command("podwright");
  program
    .description("Runs pods on this machine through a container runtime, and explains everything it does.")
    .version(`podwright ${version}`, "--version", "print the version")
    // Options after a command's name are that command's: the kubelet has its own --version.
    .enablePositionalOptions()
    .exitOverride()
    .showHelpAfterError("(see --help)")
    .configureOutput({
      writeOut: (text) => terminal.print(text.trimEnd()),
      writeErr: (text) => terminal.warn(text.trimEnd()),
      outputError: (text, write) => write(commandLineError(text)),
    })
    .configureHelp({ sortSubcommands: false, showGlobalOptions: false })
    .addHelpText(
      "after",
      `
Exit codes: 0 done, 1 failed, 2 bad input, 3 a problem of this machine. PODWRIGHT_DEBUG=1 adds stack traces to errors.

  podwright run examples/hello.yaml     run a pod, see it come up, Ctrl-C stops it
  podwright doctor                      can this machine run pods?`,
    );
  const define: Define = { program, terminal, setExitCode };
  addRun(define);
  addPs(define);
  addLogs(define);
  addDebug(define);
  addRemoteCommands({ program, run: (work) => withMachine(define, work) });
  addStop(define);
  addServiceCommands({ program, run: (work) => withMachine(define, work) });
  addJournalCommands({ program, run: (work) => withContext(define, work) });
  addExplain(program, terminal, setExitCode);
  addPlan(define);
  addUpkeepCommands({ program, run: (work) => withContext(define, work) });
  addVolumes({ program, run: (work) => withMachine(define, work) });
  addUi(define);
  addReplay(define);
  addDoctor(define);
  addKubelet(define);
  addEngine(define);
  addCompletion(program, terminal, setExitCode);
  addVersion(program, terminal, setExitCode);
  return program;
}

interface Define {
  readonly program: Command;
  readonly terminal: Terminal;
  readonly setExitCode: (code: number) => void;
}

/** Wraps a command: opens the context of its state directory, and sets the exit code. */
function withContext<O extends StateOptions>(
  { terminal, setExitCode }: Define,
  work: (context: CommandContext, options: O, operands: readonly string[]) => Promise<number>,
): (...given: unknown[]) => Promise<void> {
  return async (...given) => {
    // Commander passes the operands, then the options, then the command.
    const options = given.at(-2) as O;
    const operands = given
      .slice(0, -2)
      .flat()
      .filter((operand) => typeof operand === "string");
    const { openContext } = await import("./ask-commands.ts");
    setExitCode(await work(await openContext(terminal, options), options, operands));
  };
}

/** {@link withContext} for commands that use more than the engine's socket. */
function withMachine<O extends StateOptions>(
  define: Define,
  work: (context: MachineContext, options: O, operands: readonly string[]) => Promise<number>,
): (...given: unknown[]) => Promise<void> {
  return withContext<O>(define, async (context, options, operands) => {
    const { openMachine } = await import("./machine-commands.ts");
    return await work(openMachine(context), options, operands);
  });
}

const endpointOption = (what: string): Option => {
  return new Option("--runtime-endpoint <endpoint>", what).argParser(parseEndpoint);
};
const otherRuntime = "use this CRI runtime (unix://…) instead of podwright's own containerd";
const recordOption = (): Option => {
  return new Option("--record <file>", "record every decision and its inputs, for 'podwright replay'");
};

/** Without either of them it is as the engine before had it. */
const turnsEvictionsOn = (): Option => {
  return new Option("--evict", "evict pods when the machine runs out of memory or disk, until the last pod is gone");
};
const turnsEvictionsOff = (): Option => {
  return new Option("--no-evict", "as the engine starts again, end what an earlier --evict asked for");
};

function addRun(define: Define): void {
  define.program
    .command("run")
    .summary("run pods from manifests, and show how they start")
    .description(
      "Runs the pods of manifest files, directories or URLs (YAML or JSON, several documents in a file), with the " +
        "ConfigMaps, Secrets and PersistentVolumeClaims among them. Stays and shows progress; Ctrl-C stops the pods within their grace " +
        "period, a second Ctrl-C immediately. Without FILE it runs the stored pods.",
    )
    .argument("[file...]", "manifest files, directories, http(s) URLs, or - for standard input")
    .option("-d, --detach", "return once the pods are up, and leave them running")
    .addOption(
      new Option("--wait <state>", "what --detach waits for").choices(["ready", "running", "none"]).default("ready"),
    )
    .addOption(
      new Option("--timeout <duration>", "how long --detach waits").argParser(parseDuration).default(60_000, "60s"),
    )
    .addOption(turnsEvictionsOn())
    .addOption(turnsEvictionsOff())
    .option("--keep", "leave the pods running on Ctrl-C, and keep ended pods")
    .addOption(recordOption())
    .addOption(endpointOption(otherRuntime))
    .addOption(stateOption())
    .addOption(jsonOption().implies({ detach: true }))
    .addHelpText(
      "after",
      `
Exit codes: 0 the pods are up (--detach), have succeeded or were stopped; 1 one failed or was not up in time;
2 a manifest is invalid (the others run); 3 this machine cannot run pods.

  podwright run examples/hello.yaml
  podwright run --detach --wait ready web.yaml config/ && curl http://127.0.0.1:8080
  kubectl create configmap app --from-file=app.conf --dry-run=client -o yaml | podwright run - pod.yaml`,
    )
    .action(
      withMachine<RunOptions & StateOptions>(define, async (context, options, files) => {
        return (await import("./manifest-commands.ts")).runCommand(context, files, options);
      }),
    );
}

function addPs(define: Define): void {
  define.program
    .command("ps")
    .summary("list the pods")
    .description("Lists the pods of the running engine. Without one: the last record of each pod, and exit code 1.")
    .addOption(new Option("-o, --output <format>", "more columns, or JSON").choices(["wide", "json"]))
    .addOption(jsonOption())
    .addOption(stateOption())
    .addHelpText(
      "after",
      "\n  podwright ps -o wide\n  podwright ps --json | jq -r '.pods[] | select(.ready | not) | .name'",
    )
    .action(
      withContext<PsOptions & StateOptions>(define, async (context, options) => {
        return (await import("./ask-commands.ts")).psCommand(context, options);
      }),
    );
}

function addLogs(define: Define): void {
  define.program
    .command("logs")
    .summary("print a container's logs")
    .description(
      "Prints the logs of a container: its stdout to stdout, its stderr to stderr. " +
        "Without an engine it reads the log files. On a terminal, control characters other than colours are escaped.",
    )
    .addArgument(podArgument())
    .argument("[container]", "default: that of the annotation kubectl.kubernetes.io/default-container, or the first")
    .option("-c, --container <name>", "the container, as an option")
    .option("-f, --follow", "keep printing new lines, across log rotation and container restarts")
    .addOption(new Option("--tail <lines>", "only the last lines (all: every line)").argParser(parseTail))
    .option("-p, --previous", "the previous instance of the container")
    .option("--timestamps", "print the time before each line")
    .addOption(
      new Option("--since <duration>", "only lines newer than this, e.g. 10m (0: every line)").argParser(parseDuration),
    )
    .addOption(stateOption())
    .addHelpText("after", "\n  podwright logs -f --tail 20 hello client\n  podwright logs --previous crash")
    .action(
      withMachine<LogsOptions & StateOptions>(define, async (context, options, [pod = "", container]) => {
        return (await import("./machine-commands.ts")).logsCommand(context, pod, container, options);
      }),
    );
}

function addDebug(define: Define): void {
  define.program
    .command("debug")
    .summary("run a command in an ephemeral container of a running pod")
    .description(
      "Adds an ephemeral container to a pod that 'podwright run' started, prints its output, and fails if the container fails. " +
        "It shares the pod's network, and with --target a container's processes. It is never restarted, and stays " +
        "until its pod is stopped.",
    )
    .addArgument(podArgument())
    .argument("[command...]", "after --; default: the image's command")
    .option("--image <image>", "default: the image of the target, or of the pod's first container")
    .option("--target <container>", "the container whose process namespace it joins")
    .addOption(stateOption())
    .addHelpText(
      "after",
      "\n  podwright debug web --target app -- ps\n  podwright debug web --image busybox -- nc -z db 5432",
    )
    .action(
      withMachine<DebugOptions & StateOptions>(define, async (context, options, [pod = "", ...command]) => {
        return (await import("./machine-commands.ts")).debugCommand(context, pod, command, options);
      }),
    );
}

function addStop(define: Define): void {
  define.program
    .command("stop")
    .summary("stop pods and remove them")
    .description("Stops pods that 'podwright run' started, within their grace period, and waits until they are gone.")
    .argument("<pod...>", "names, namespace/names or UIDs")
    .addOption(
      new Option("--grace <seconds>", "overrides the pod's grace period; 0: immediately").argParser(parseSeconds),
    )
    .addOption(jsonOption())
    .addOption(stateOption())
    .addHelpText("after", "\n  podwright stop hello\n  podwright stop --grace 5 web tools/worker")
    .action(
      withMachine<StopOptions & StateOptions>(define, async (context, options, pods) => {
        return (await import("./machine-commands.ts")).stopCommand(context, pods, options);
      }),
    );
}

function addPlan(define: Define): void {
  define.program
    .command("plan")
    .summary("show what would be done next, without doing it")
    .description(
      "Shows what the next sync of each pod would do, and why. With manifests: what they would add or replace as " +
        "well; without an engine, for a node without pods.",
    )
    .argument("[file...]", "manifest files, directories, http(s) URLs, or - for standard input")
    .addOption(jsonOption())
    .addOption(stateOption())
    .addHelpText("after", "\n  podwright plan\n  podwright plan web.yaml config/")
    .action(
      withMachine<JsonOptions>(define, async (context, options, files) => {
        return (await import("./manifest-commands.ts")).planCommand(context, files, options);
      }),
    );
}

function addUi(define: Define): void {
  define.program
    .command("ui")
    .summary("show the node and its pods in a browser")
    .description(
      "Serves a live page of this node to one browser of this machine until Ctrl-C: gauges, pods, and their timelines " +
        "with causes. The printed link works once. From another machine: set --port, and forward the same port.",
    )
    .addOption(new Option("--port <port>", "on 127.0.0.1; default: a free one").argParser(parsePort))
    .addOption(stateOption())
    .addHelpText("after", "\n  podwright ui\n  ssh -L 8080:127.0.0.1:8080 node podwright ui --port 8080")
    .action(
      withMachine<UiOptions & StateOptions>(define, async (context, options) => {
        return (await import("./machine-commands.ts")).uiCommand(context, options);
      }),
    );
}

function addReplay({ program, terminal, setExitCode }: Define): void {
  program
    .command("replay")
    .summary("repeat the decisions of a recording, and compare")
    .description(
      "Repeats the decisions of a recording (--record), without a runtime, and shows the first one that " +
        "differs now. Exit code 1 if one does.",
    )
    .argument("<file>", "a file written by --record")
    .option("--pod <pod>", "only this pod: its name, namespace/name or UID")
    .addOption(jsonOption())
    .addHelpText("after", "\n  podwright replay node.rec --pod web")
    .action(async (file: string, options: { readonly pod?: string; readonly json?: true }) => {
      const { replayCommand } = await import("./replay.ts");
      setExitCode(await replayCommand(terminal, file, options));
    });
}

function addDoctor(define: Define): void {
  define.program
    .command("doctor")
    .summary("check whether this machine can run pods")
    .description(
      "Checks this machine and the running engine, with a remedy for each problem. Exit code 3 if any check fails.",
    )
    .addOption(jsonOption())
    .addOption(endpointOption("check this CRI runtime (unix://…)"))
    .option("--kubelet", "instead: what would change if podwright were this machine's kubelet")
    .addOption(stateOption())
    .action(
      withMachine<DoctorOptions & StateOptions>(define, async (context, options) => {
        if (options.kubelet === true) {
          return (await import("./service-commands.ts")).kubeletDoctorCommand(context, options);
        }
        return (await import("./doctor.ts")).doctorCommand(context, options);
      }),
    );
}

function addKubelet(define: Define): void {
  define.program
    .command("kubelet")
    .summary("run as this machine's kubelet, in the foreground")
    .description("Runs the node agent; 'podwright kubelet --help' lists its flags, which are those of the kubelet.")
    .argument("[flags...]")
    // The kubelet's flags have their own syntax: src/config/flags.ts parses them.
    .helpOption(false)
    .allowUnknownOption()
    .passThroughOptions()
    .action(async (flags: readonly string[]) => {
      const { kubeletCommand } = await import("./kubelet.ts");
      define.setExitCode(await kubeletCommand(define.terminal, flags));
    });
}

/** The daemon behind `podwright run`; users never call it. */
function addEngine(define: Define): void {
  define.program
    .command("engine", { hidden: true })
    .description("Runs the engine of a state directory in the foreground; 'podwright run' starts it.")
    .requiredOption("--state-dir <dir>", "where podwright keeps its state")
    .option("--stay", "keep running without pods")
    .option("--manifests <dir>", "also run the manifests in this directory")
    .addOption(turnsEvictionsOn())
    .addOption(turnsEvictionsOff())
    .addOption(recordOption())
    .addOption(endpointOption(otherRuntime))
    .action(async (options: EngineOptions) => {
      const { runEngine } = await import("../agent/engine.ts");
      define.setExitCode(await runEngine(options));
    });
}
