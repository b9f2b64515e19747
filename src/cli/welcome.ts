import { relative } from "node:path/posix";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { shellWord } from "../base/shell-word.ts";
import { version } from "../base/version.ts";
import { printable } from "../journal/text.ts";
import { preflight } from "../private-runtime/preflight/preflight.ts";
import { openContext } from "./context.ts";
import { findEngine, searchPath } from "./engine-process.ts";
import { plural } from "./format.ts";
import { type MachineContext, openMachine } from "./machine-context.ts";
import { ownCommand, ownProgram, remedyAsTyped } from "./own-command.ts";
import { ownFiles } from "./own-files.ts";
import type { Terminal } from "./terminal.ts";

/** `podwright` without arguments on a terminal: whether this machine can run pods, and the first command to try. */
export async function welcome(terminal: Terminal): Promise<ExitCode> {
  const { paint } = terminal;
  const context = openMachine(await openContext(terminal, {}));
  terminal.print(`${paint.strong(`podwright ${version}`)} runs Kubernetes pods on this machine.`);
  const own = (command: string): string => ownCommand(context.layout.stateDirectory, command);
  const running = await runningPods(context);
  if (running === "denied") {
    terminal.print(`${paint.caution("!")} an engine runs here, and only root may see its pods: sudo ${own("ps")}`);
    return ExitCode.environment;
  }
  if (running !== undefined) {
    terminal.print(`${paint.good("✓")} ${plural(running, "pod")} here: ${own("ps")}`);
    return ExitCode.done;
  }
  const { files, mounts, processes, layout } = context;
  const looked = { files, mounts, processes, layout, searchPath: searchPath(context), onlyLooks: true } as const;
  const { checks } = await preflight(looked);
  const failed = checks.filter(({ ok }) => ok === "failed");
  for (const { name, detail, remedy } of failed) {
    terminal.print(
      `${paint.bad("✗")} ${name}: ${printable(detail)}\n  → ${printable(remedyAsTyped(remedy ?? "see podwright doctor", context.layout.stateDirectory))}`,
    );
  }
  terminal.print(failed.length > 0 ? `then: ${ownProgram()}` : firstSteps(context));
  return failed.length > 0 ? ExitCode.environment : ExitCode.done;
}

/** How many; undefined: no engine runs. */
async function runningPods(context: MachineContext): Promise<number | "denied" | undefined> {
  try {
    return (await findEngine(context)) && (await context.engine.pods()).length;
  } catch (error) {
    if (error instanceof PodwrightError && error.exitCode === ExitCode.environment) return "denied";
    throw error;
  }
}

function firstSteps({ layout, terminal: { paint } }: MachineContext): string {
  const example = `${ownFiles().examples}/hello.yaml`;
  const near = relative(process.cwd(), example);
  return [
    `${paint.good("✓")} ready to run pods`,
    "",
    `  ${ownCommand(layout.stateDirectory, "run", shellWord(near.startsWith("..") ? example : near))}`,
    `  ${ownProgram()} --help`,
  ].join("\n");
}
