import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { MachineContext } from "./machine-context.ts";
import { LocalTerminal } from "./local-terminal.ts";
import { carryStreams, type RemoteEnd } from "./remote-streams.ts";
import { ownCommand } from "./own-command.ts";
import { remoteContainer, remotePath, remotePod } from "./remote-target.ts";

export interface ExecOptions {
  readonly container?: string;
  readonly stdin?: true;
  readonly tty?: true;
}

/** `podwright exec POD -- CMD…`: runs a command in a container and ends with its exit code. */
export async function execCommand(
  context: MachineContext,
  selector: string,
  command: readonly string[],
  options: ExecOptions,
): Promise<number> {
  if (command.length === 0) {
    throw new PodwrightError(ExitCode.badInput, "no command given", {
      remedy: `add a command after --, e.g. '${ownCommand(context.layout.stateDirectory, "exec", "-it", selector, "--", "sh")}'`,
    });
  }
  const pod = await remotePod(context, selector);
  const container = remoteContainer(context, pod, options.container);
  const terminal = options.tty === true ? await ownTerminal(context, options) : undefined;
  const query = new URLSearchParams(command.map((word) => ["command", word]));
  const path = remotePath("exec", pod, container.name);
  const end = await carry(context, { path, query, stdin: options.stdin === true, terminal });
  return exitCodeOf(context, end);
}

/** `podwright attach POD`: connects with the process of a running container. */
export async function attachCommand(context: MachineContext, selector: string, options: ExecOptions): Promise<number> {
  const pod = await remotePod(context, selector);
  const { name, stdin: reads, tty: hasTerminal } = remoteContainer(context, pod, options.container);
  if (options.stdin === true && reads !== true) {
    throw new PodwrightError(ExitCode.failed, `container ${name} has no stdin`, {
      remedy: "its manifest does not set stdin: true; attach without -i, or run a command with podwright exec",
    });
  }
  if (options.tty === true && hasTerminal !== true) {
    context.terminal.warn(`Unable to use a TTY - container ${name} did not allocate one`);
  }
  const wantsTerminal = options.tty === true && hasTerminal === true;
  // Printed before the terminal is in raw mode.
  if (wantsTerminal) context.terminal.warn("If you don't see a command prompt, try pressing enter.");
  const terminal = wantsTerminal ? await ownTerminal(context, options) : undefined;
  const query = new URLSearchParams();
  const path = remotePath("attach", pod, name);
  const end = await carry(context, { path, query, stdin: options.stdin === true, terminal });
  return attachCodeOf(context, end);
}

/** This command's terminal, if -t and -i ask for it and standard input is one. */
async function ownTerminal(
  { terminal, processes }: MachineContext,
  { stdin }: ExecOptions,
): Promise<LocalTerminal | undefined> {
  if (stdin !== true) {
    terminal.warn("-t without -i has no effect");
    return undefined;
  }
  const own = await LocalTerminal.take(processes);
  if (own === undefined) {
    terminal.warn("Unable to use a TTY - input is not a terminal or the right kind of file");
  }
  return own;
}

async function carry(
  context: MachineContext,
  {
    path,
    query,
    stdin,
    terminal,
  }: {
    readonly path: string;
    readonly query: URLSearchParams;
    readonly stdin: boolean;
    readonly terminal: LocalTerminal | undefined;
  },
): Promise<RemoteEnd> {
  query.set("output", "1");
  if (stdin) query.set("input", "1");
  query.set(terminal === undefined ? "error" : "tty", "1");
  try {
    const input = stdin ? process.stdin : undefined;
    return await carryStreams(
      context,
      { path: `${path}?${query.toString()}`, input, terminal },
      context.terminal.closed,
    );
  } finally {
    terminal?.[Symbol.dispose]();
    // An open terminal would keep this process alive.
    if (stdin) process.stdin.destroy();
  }
}

/** @throws PodwrightError when the command could not be run, or its end is not known */
export function exitCodeOf({ layout, terminal }: Pick<MachineContext, "layout" | "terminal">, end: RemoteEnd): number {
  switch (end.kind) {
    case "exited":
      if (end.code !== 0) terminal.warn(`command terminated with exit code ${end.code}`);
      return end.code;
    case "failed":
      throw failure(end.message);
    case "lost":
      if (terminal.closed.aborted) return ExitCode.done;
      throw new PodwrightError(ExitCode.failed, "the connection ended before the command did", {
        remedy: `'${ownCommand(layout.stateDirectory, "ps")}' shows whether the container still runs; the command may still run in it`,
      });
  }
}

/** With the end of the container's process, or of its input, the runtime says so. @throws PodwrightError when it did not */
export function attachCodeOf(
  { layout, terminal }: Pick<MachineContext, "layout" | "terminal">,
  end: RemoteEnd,
): number {
  if (end.kind === "failed") throw failure(end.message);
  if (end.kind === "exited" || terminal.closed.aborted) return ExitCode.done;
  throw new PodwrightError(ExitCode.failed, "the connection to the container was lost", {
    remedy: `'${ownCommand(layout.stateDirectory, "ps")}' shows whether it still runs`,
  });
}

function failure(message: string): PodwrightError {
  return new PodwrightError(ExitCode.failed, message);
}
