import { onAbort } from "../base/abort.ts";
import { errorMessage } from "../base/errors.ts";
import type { ContainerId } from "../base/ids.ts";
import { Semaphore } from "../base/semaphore.ts";
import type { TimerQueue } from "../base/timer-queue.ts";
import { printable } from "../journal/text.ts";
import type { Clock } from "../ports/clock.ts";
import { type CriRuntimeService, isCriError } from "../ports/cri.ts";
import { type GrpcHealthAnswer, type NetworkProbes, ProbeTargetError } from "../ports/network-probes.ts";
import type { HideSecrets } from "../runtime/hidden-secrets.ts";
import type { ProbeAction } from "./probe-action.ts";

/**
 * How one probe ended. error: it could not be made, which says nothing about the container. `text` is one clause for
 * people, safe to print.
 */
export interface ProbeOutcome {
  readonly kind: "success" | "warning" | "failure" | "error";
  readonly text: string;
  /** How much later than due it was sent, or its answer looked at, because podwright was busy: no fault of the target. */
  readonly lateMs: number;
}

export interface ProbeOrder {
  readonly id: ContainerId;
  /** Throws when the probe can't be made. */
  readonly action: () => ProbeAction;
  readonly timeoutMs: number;
  /** When it was to be sent, monotonic ms. */
  readonly dueMs: number;
  /** What is told of output and answers passes through it. */
  readonly hide: HideSecrets;
}

/** What runs commands in containers. */
export type CommandService = Pick<CriRuntimeService, "execSync">;

type Verdict = Pick<ProbeOutcome, "kind" | "text">;

/** Tries in a row when a probe could not be made (maxProbeRetries). */
const maxTries = 3;
/** Commands that begin at a time: each is a process to be started in a container. */
const maxCommandStarts = 8;
/** A command that runs longer gives up its place among those, so that it delays no other. */
const slowCommandMs = 500;
/** How much longer than a command's own timeout the runtime may take to tell of it. */
const runtimeSlackMs = 10_000;
/** A deadline that is seen later than this was seen late because podwright was busy. */
const punctualMs = 20;
/** Most that is read of a command's output (maxReadLength), and most that is told of it. */
const maxOutputBytes = 10 * 1024;
const maxToldCharacters = 300;

class ProbeTimeoutError extends Error {}

/** Makes probes and says how they ended. A deadline counts from the moment at which the probe is really sent. */
export class ProbeRunner {
  readonly #clock: Clock;
  readonly #timers: TimerQueue;
  readonly #commands: CommandService;
  readonly #network: NetworkProbes;
  readonly #commandStarts = new Semaphore(maxCommandStarts);

  constructor(clock: Clock, timers: TimerQueue, commands: CommandService, network: NetworkProbes) {
    this.#clock = clock;
    this.#timers = timers;
    this.#commands = commands;
    this.#network = network;
  }

  /** @throws the signal's reason alone */
  async run(order: ProbeOrder, signal: AbortSignal): Promise<ProbeOutcome> {
    const lateness = new Lateness(this.#clock.monotonic() - order.dueMs);
    let problem = "";
    for (let tries = 0; tries < maxTries; tries++) {
      try {
        const { kind, text } = await this.#try(order, lateness, signal);
        return { kind, text: kind === "success" ? text : told(order.hide(text)), lateMs: lateness.ms };
      } catch (error) {
        signal.throwIfAborted();
        problem = errorMessage(error);
      }
    }
    return { kind: "error", text: told(order.hide(problem)), lateMs: lateness.ms };
  }

  async #try(order: ProbeOrder, lateness: Lateness, signal: AbortSignal): Promise<Verdict> {
    const action = order.action();
    if (action.kind === "exec") return await this.#exec(action.command, order, lateness, signal);
    try {
      return await this.#within(order.timeoutMs, lateness, signal, (inTime) => this.#look(action, inTime));
    } catch (error) {
      if (error instanceof ProbeTimeoutError) return failure(`no answer in ${order.timeoutMs / 1000} s`);
      if (error instanceof ProbeTargetError) return failure(error.message);
      throw error;
    }
  }

  async #look(action: Exclude<ProbeAction, { kind: "exec" }>, signal: AbortSignal): Promise<Verdict> {
    switch (action.kind) {
      case "http": {
        const { status, redirectedTo } = await this.#network.httpGet(action.request, signal);
        return judgeHttp(status, redirectedTo);
      }
      case "tcp":
        await this.#network.tcpConnect(action.host, action.port, signal);
        return { kind: "success", text: "connected" };
      case "grpc":
        return judgeHealth(await this.#network.grpcHealth(action.host, action.port, action.service, signal));
    }
  }

  async #exec(
    command: readonly string[],
    { id, timeoutMs }: ProbeOrder,
    lateness: Lateness,
    signal: AbortSignal,
  ): Promise<Verdict> {
    const askedMs = this.#clock.monotonic();
    using place = await this.#commandStarts.acquire(signal);
    lateness.note(this.#clock.monotonic() - askedMs);
    using _slow = this.#timers.at(this.#clock.monotonic() + slowCommandMs, () => place[Symbol.dispose]());
    const request = { containerId: id, cmd: [...command], timeout: BigInt(Math.ceil(timeoutMs / 1000)) };
    try {
      const { exitCode, stdout, stderr } = await this.#within(timeoutMs + runtimeSlackMs, lateness, signal, (inTime) =>
        this.#commands.execSync(request, { signal: inTime }),
      );
      return exitCode === 0
        ? { kind: "success", text: "exit code 0" }
        : failure(`exit code ${exitCode}${outputText([stdout, stderr])}`);
    } catch (error) {
      // The runtime ends a command at its timeout and says so. That it does not answer at all is no command's fault.
      if (isCriError(error, "DeadlineExceeded")) return failure(`still running after ${timeoutMs / 1000} s`);
      if (error instanceof ProbeTimeoutError) throw new Error("the runtime does not answer", { cause: error });
      throw error;
    }
  }

  /**
   * Runs `work` with a signal that aborts after `limitMs`. When that is seen late, podwright was busy, and the answer may
   * be waiting: as much time again is given as was lost, up to the limit.
   */
  async #within<T>(
    limitMs: number,
    lateness: Lateness,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const controller = new AbortController();
    const { promise, reject } = Promise.withResolvers<never>();
    promise.catch(() => {});
    let creditMs = limitMs;
    const end = (reason: unknown): void => {
      reject(reason);
      controller.abort(reason);
    };
    const expire = (dueMs: number): void => {
      const nowMs = this.#clock.monotonic();
      const lostMs = Math.min(nowMs - dueMs, creditMs);
      if (lostMs <= punctualMs) return end(new ProbeTimeoutError(`no answer within ${limitMs} ms`));
      creditMs -= lostMs;
      lateness.note(nowMs - dueMs);
      timer = this.#timers.at(nowMs + lostMs, expire);
    };
    let timer = this.#timers.at(this.#clock.monotonic() + limitMs, expire);
    using _abort = onAbort(signal, () => end(signal.reason));
    try {
      return await Promise.race([work(controller.signal), promise]);
    } finally {
      timer[Symbol.dispose]();
    }
  }
}

/** The greatest delay of one probe that was podwright's own. */
class Lateness {
  ms = 0;

  constructor(ms: number) {
    this.note(ms);
  }

  note(ms: number): void {
    this.ms = Math.max(this.ms, Math.round(ms));
  }
}

function failure(text: string): Verdict {
  return { kind: "failure", text };
}

function judgeHttp(status: number, redirectedTo: string | undefined): Verdict {
  if (status < 200 || status >= 400) return failure(`HTTP status ${status}`);
  if (status < 300) return { kind: "success", text: `HTTP status ${status}` };
  const where = redirectedTo === undefined ? "" : ` to ${redirectedTo}`;
  return { kind: "warning", text: `Probe terminated redirects${where} (HTTP status ${status})` };
}

/** gRPC's codes that say something of their own about a health check. */
const unimplemented = 12;
const deadlineExceeded = 4;

function judgeHealth(answer: GrpcHealthAnswer): Verdict {
  if ("status" in answer) {
    return answer.status === "SERVING" ? { kind: "success", text: "SERVING" } : failure(`status ${answer.status}`);
  }
  const { code, message } = answer;
  if (code === unimplemented) return failure(`the server has no grpc.health.v1.Health: ${message}`);
  if (code === deadlineExceeded) return failure(`the server gave up in time: ${message}`);
  return failure(`gRPC code ${code}: ${message}`);
}

/** What a command printed, from its begin, as it is: what is told of it is made safe and short in one place. */
function outputText(outputs: readonly Uint8Array[]): string {
  const bytes = Buffer.concat(outputs).subarray(0, maxOutputBytes);
  const text = bytes.toString().trim();
  return text === "" ? "" : `: ${text}`;
}

/** One line that a terminal may be shown, and not a long one. */
function told(text: string): string {
  const clean = printable(text);
  return clean.length <= maxToldCharacters ? clean : `${clean.slice(0, maxToldCharacters)}…`;
}
