import { onAbort } from "../base/abort.ts";
import { errorMessage } from "../base/errors.ts";
import type { ContainerId } from "../base/ids.ts";
import { Semaphore } from "../base/semaphore.ts";
import type { TimerQueue } from "../base/timer-queue.ts";
import { printable } from "../journal/text.ts";
import type { Clock } from "../ports/clock.ts";
import { type CriRuntimeService, isCriError } from "../ports/cri.ts";
import {
  type GrpcHealthAnswer,
  type HttpProbeAnswer,
  type NetworkProbes,
  ProbeTargetError,
} from "../ports/network-probes.ts";
import type { HideSecrets } from "../runtime/config/hidden-secrets.ts";
import type { ProbeAction } from "./probe-action.ts";

/** The outcome of one probe. error: the probe was impossible, which says nothing about the container. */
export interface ProbeOutcome {
  readonly kind: "success" | "warning" | "failure" | "error";
  /** One clause for people, safe to print and short. */
  readonly text: string;
  /**
   * For Events, also safe and bounded, if different: upstream's text, which tools match, and more of the container's
   * output.
   */
  readonly eventText?: string;
  /**
   * How much later than due it was sent, or its response processed, because podwright was busy: not the target's fault.
   */
  readonly lateMs: number;
}

export interface ProbeOrder {
  readonly id: ContainerId;
  /** Throws when the probe is impossible. */
  readonly action: () => ProbeAction;
  readonly timeoutMs: number;
  /** When it was due, monotonic ms. */
  readonly dueMs: number;
  /** Filter for quoted output and responses. */
  readonly hide: HideSecrets;
}

/** Runs commands in containers. */
export type CommandService = Pick<CriRuntimeService, "execSync">;

/** Unfiltered; sanitised and truncated in one place. */
type Verdict = Pick<ProbeOutcome, "kind" | "text" | "eventText">;

/** Consecutive attempts when a probe is impossible (maxProbeRetries). */
const maxTries = 3;
/** Commands that start concurrently: each is a new process in a container. */
const maxCommandStarts = 8;
/** A command that runs longer releases its slot, so that it delays no other. */
const slowCommandMs = 500;
/** Extra time for the runtime to report a command's timeout. */
const runtimeSlackMs = 10_000;
/** A deadline noticed later than this was noticed late because podwright was busy. */
const punctualMs = 20;
/** Maximum command output that is read (maxReadLength), and maximum quoted of it and of responses. */
const maxOutputBytes = 10 * 1024;
const maxToldCharacters = 300;
/** For Events; with its prefix within the API's note limit (NoteLengthLimit). */
const maxEventCharacters = 900;

class ProbeTimeoutError extends Error {}

/** Executes probes. A deadline counts from when the probe is actually sent. */
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

  /** @throws only the signal's reason */
  async run(order: ProbeOrder, signal: AbortSignal): Promise<ProbeOutcome> {
    const lateness = new Lateness(this.#clock.monotonic() - order.dueMs);
    let problem = "";
    for (let tries = 0; tries < maxTries; tries++) {
      try {
        return outcomeOf(await this.#try(order, lateness, signal), order.hide, lateness.ms);
      } catch (error) {
        signal.throwIfAborted();
        problem = errorMessage(error);
      }
    }
    return outcomeOf({ kind: "error", text: problem }, order.hide, lateness.ms);
  }

  async #try(order: ProbeOrder, lateness: Lateness, signal: AbortSignal): Promise<Verdict> {
    try {
      const action = order.action();
      if (action.kind === "exec") return await this.#exec(action.command, order, lateness, signal);
      return await this.#within(order.timeoutMs, lateness, signal, (inTime) => this.#look(action, inTime));
    } catch (error) {
      if (error instanceof ProbeTimeoutError) return failure(`no response in ${order.timeoutMs / 1000} s`);
      if (error instanceof ProbeTargetError) return failure(error.message);
      throw error;
    }
  }

  async #look(action: Exclude<ProbeAction, { kind: "exec" }>, signal: AbortSignal): Promise<Verdict> {
    switch (action.kind) {
      case "http":
        return judgeHttp(await this.#network.httpGet(action.request, signal));
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
      // The runtime ends a command at its timeout and reports it. An unresponsive runtime is not the command's failure.
      if (isCriError(error, "DeadlineExceeded")) return failure(`still running after ${timeoutMs / 1000} s`);
      if (error instanceof ProbeTimeoutError) throw new Error("the runtime does not answer", { cause: error });
      throw error;
    }
  }

  /**
   * Runs `work` with a signal that aborts after `limitMs`. If the abort is late, podwright was busy, and the response
   * may be waiting: the lost time is added, up to the limit.
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
      if (lostMs <= punctualMs) return end(new ProbeTimeoutError(`no response within ${limitMs} ms`));
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

/** The largest delay of one probe caused by podwright itself. */
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

function judgeHttp({ status, redirectedTo, body }: HttpProbeAnswer): Verdict {
  const text = `HTTP status ${status}`;
  if (status < 200 || status >= 400) {
    // Without the body: it may contain what readers of Events must not see (https://issue.k8s.io/99425).
    return { kind: "failure", text, eventText: `HTTP probe failed with statuscode: ${status}` };
  }
  if (status < 300) return { kind: "success", text };
  const where = redirectedTo === undefined ? "" : ` to ${redirectedTo}`;
  const said = Buffer.from(body ?? []).toString();
  return {
    kind: "warning",
    text: `Probe terminated redirects${where} (${text})${quoted(said)}`,
    eventText: `Probe terminated redirects, Response body: ${said}`,
  };
}

/** gRPC codes with a meaning of their own for health checks. */
const unimplemented = 12;
const deadlineExceeded = 4;

function judgeHealth(answer: GrpcHealthAnswer): Verdict {
  if ("status" in answer) {
    const { status } = answer;
    if (status === "SERVING") return { kind: "success", text: status };
    const eventText = `service unhealthy (responded with ${JSON.stringify(status)})`;
    return { kind: "failure", text: `status ${status}`, eventText };
  }
  const { code, message } = answer;
  if (code === unimplemented) {
    const eventText = `error: this server does not implement the grpc health protocol (grpc.health.v1.Health): ${message}`;
    return { kind: "failure", text: `the server has no grpc.health.v1.Health: ${message}`, eventText };
  }
  if (code === deadlineExceeded) return failure(`the server timed out: ${message}`);
  return {
    ...failure(`gRPC code ${code}: ${message}`),
    eventText: `error: health rpc probe failed: code ${code}: ${message}`,
  };
}

/** The beginning of a command's output. */
function outputText(outputs: readonly Uint8Array[]): string {
  return quoted(Buffer.concat(outputs).subarray(0, maxOutputBytes).toString());
}

function quoted(text: string): string {
  return text.trim() === "" ? "" : `: ${text.trim()}`;
}

function outcomeOf(verdict: Verdict, hide: HideSecrets, lateMs: number): ProbeOutcome {
  const { kind, eventText = verdict.text } = verdict;
  if (kind === "success") return { kind, text: verdict.text, lateMs };
  const presentable = (words: string, most: number): string => shortened(printable(hide(words)), most);
  const text = presentable(verdict.text, maxToldCharacters);
  const ofEvent = presentable(eventText, maxEventCharacters);
  return { kind, text, ...(ofEvent !== text && { eventText: ofEvent }), lateMs };
}

function shortened(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most)}…`;
}
