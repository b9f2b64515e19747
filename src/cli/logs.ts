import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { LogLine } from "../logs/cri-log.ts";
import { fixedTime } from "../logs/line-time.ts";
import { followLog, type LogRange, readLog } from "../logs/reader.ts";
import { FileError } from "../ports/files.ts";
import type { MachineContext } from "./machine-context.ts";
import { EngineGone } from "./engine-client.ts";
import { Interrupts } from "./interrupts.ts";
import { gonePods, listPods } from "./listing.ts";
import { findLog, logGone, type LogTarget } from "./log-target.ts";
import { hasEnded } from "../server/pod-words.ts";
import { ownCommand } from "./own-command.ts";
import { terminalText } from "./safe-text.ts";
import type { Terminal } from "./terminal.ts";

export interface LogsOptions {
  readonly follow?: true;
  readonly container?: string;
  readonly tail?: number | "all";
  readonly previous?: true;
  readonly timestamps?: true;
  /** Milliseconds before the present; 0: all lines. */
  readonly since?: number;
}

const FLUSH_BYTES = 64 * 1024;
/** While following, the minimum interval of asking the engine whether the container has ended. */
const ENDED_CHECK_MS = 1000;

type LogsContext = Pick<MachineContext, "terminal" | "clock" | "files" | "compression" | "engine" | "layout">;

/** `podwright logs POD [CONTAINER]`: prints the container's log; its standard error goes to standard error. */
export async function logsCommand(
  context: LogsContext,
  selector: string,
  container: string | undefined,
  options: LogsOptions,
): Promise<ExitCode> {
  const { terminal, clock } = context;
  const find = async (): Promise<LogTarget> => {
    return await findLog(context, selector, oneContainer(container, options.container), options.previous === true);
  };
  const range: LogRange = {
    ...(options.tail !== undefined && options.tail !== "all" && { tailLines: options.tail }),
    ...(isLimited(options.since) && { include: notBefore(clock.now() - options.since) }),
  };
  const output = new LogOutput(terminal, options);
  using interrupts = new Interrupts(process, terminal.closed);
  const signal = interrupts.first;
  let target = await find();
  for (;;) {
    const lines =
      options.follow === true
        ? followLog(context, clock, target.path, { ...range, ended: endOf(context, target), signal })
        : readLog(context, target.path, range);
    try {
      await output.all(lines, signal);
      return ExitCode.done;
    } catch (error) {
      if (!(error instanceof FileError) || error.code !== "ENOENT") throw error;
      const { path } = target;
      if (output.isEmpty && options.previous === true) target = await find();
      // When a container ends, the log before its own is removed, and its own is the previous one from then on.
      if (target.path === path) throw noLog(context, target, options.previous === true);
    }
  }
}

/** As with kubectl, 0 means no limit. */
function isLimited(since: number | undefined): since is number {
  return since !== undefined && since > 0;
}

function oneContainer(operand: string | undefined, option: string | undefined): string | undefined {
  if (operand !== undefined && option !== undefined) {
    throw new PodwrightError(ExitCode.badInput, `two containers given: ${operand} and, with -c, ${option}`, {
      remedy: "use only one of them",
    });
  }
  return operand ?? option;
}

function noLog(context: LogsContext, { container, isOfEndedPod }: LogTarget, previous: boolean): PodwrightError {
  const own = (verb: "timeline" | "why"): string => ownCommand(context.layout.stateDirectory, verb);
  if (previous) {
    return new PodwrightError(ExitCode.failed, `the log of container ${container}'s previous instance is gone`, {
      remedy: `only the last instance of an ended container is kept; '${own("timeline")} POD' shows how each ended`,
    });
  }
  if (isOfEndedPod) return logGone(context, container);
  return new PodwrightError(ExitCode.failed, `container ${container} has no log yet`, {
    remedy: `-f waits for it; '${own("why")} POD' shows what the container waits for`,
  });
}

/** Writes log lines: escaped for terminals, unchanged otherwise. */
export class LogOutput {
  readonly #terminal: Terminal;
  readonly #options: Pick<LogsOptions, "timestamps" | "follow">;
  #stream: "stdout" | "stderr" = "stdout";
  #parts: (string | Uint8Array)[] = [];
  #bytes = 0;
  #hasPrinted = false;

  constructor(terminal: Terminal, options: Pick<LogsOptions, "timestamps" | "follow">) {
    this.#terminal = terminal;
    this.#options = options;
  }

  /** True until a line was printed. */
  get isEmpty(): boolean {
    return !this.#hasPrinted;
  }

  /** Prints lines until they end or the signal aborts; before an error those that precede it. */
  async all(lines: AsyncIterable<LogLine>, signal: AbortSignal): Promise<void> {
    try {
      for await (const line of lines) {
        await this.#line(line);
        if (signal.aborted) break;
      }
    } finally {
      await this.#flush();
    }
  }

  async #line(line: LogLine): Promise<void> {
    if (line.stream !== this.#stream) await this.#flush();
    this.#stream = line.stream;
    this.#hasPrinted = true;
    if (this.#options.timestamps === true && line.start && line.time !== "") this.#push(`${fixedTime(line.time)} `);
    this.#push(this.#terminal.isTerminal(line.stream) ? terminalText(new TextDecoder().decode(line.text)) : line.text);
    if (line.end) this.#push("\n");
    if (this.#options.follow === true || this.#bytes >= FLUSH_BYTES) await this.#flush();
  }

  async #flush(): Promise<void> {
    if (this.#parts.length === 0) return;
    const data = Buffer.concat(this.#parts.map((part) => (typeof part === "string" ? Buffer.from(part) : part)));
    this.#parts = [];
    this.#bytes = 0;
    await this.#terminal.write(this.#stream, data);
  }

  #push(part: string | Uint8Array): void {
    this.#parts.push(part);
    this.#bytes += part.length;
  }
}

/** Compares instants: runtimes write RFC 3339 times in the machine's time zone. */
function notBefore(since: number): (time: string) => boolean {
  return (time) => !(Date.parse(time) < since);
}

/** Whether the container has ended and will not be restarted, by the engine's last answer. */
function endOf({ engine, clock }: LogsContext, target: LogTarget): () => Promise<boolean> {
  let checked = -Infinity;
  let ended = false;
  return async () => {
    const now = clock.monotonic();
    if (ended || now - checked < ENDED_CHECK_MS) return ended;
    checked = now;
    try {
      const listing = await listPods(engine);
      const pod = listing.views.find((candidate) => candidate.uid === target.uid);
      const over = pod !== undefined && (pod.state === "terminated" || (pod.state === "syncing" && hasEnded(pod)));
      ended = over || gonePods([target], listing).length > 0;
    } catch (error) {
      // Without an engine the container may still be running.
      if (!(error instanceof EngineGone)) throw error;
    }
    return ended;
  };
}
