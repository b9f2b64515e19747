import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { Pod } from "../api/pod.ts";
import { answeredError } from "../linux/http/api-errors.ts";
import { decodeLine } from "../journal/codec.ts";
import type { JournalEntry, PodRef } from "../journal/entry.ts";
import { formatDuration } from "../journal/text.ts";
import type {
  AppliedPod,
  ClaimRemoval,
  ClaimView,
  FreeVolumeView,
  ApplyRequest,
  DebugContainer,
  DebugRequest,
  EvictionConfirmation,
  EvictionPreview,
  GarbageReport,
  Health,
  Plan,
  PodView,
} from "../server/local-api.ts";
import { ownCommand } from "./own-command.ts";
import type { StateOwner } from "./state-owner.ts";

/**
 * HTTP over the engine's Unix socket. Rejects with an error whose `code` is an errno name when there is no engine, it
 * stops, or it sends nothing for `silenceMs` (`ETIMEDOUT`).
 */
export interface EngineTransport {
  request(
    method: "GET" | "POST",
    path: string,
    options: { readonly body?: string; readonly signal?: AbortSignal; readonly silenceMs?: number },
  ): Promise<{ readonly status: number; readonly body: string }>;
  /**
   * The lines of the response to a GET, as they arrive. For a status of 400 and above it throws the engine's
   * `PodwrightError`.
   */
  lines(path: string, options: { readonly signal?: AbortSignal; readonly silenceMs?: number }): AsyncIterable<string>;
}

export interface JournalFilter {
  readonly uid?: string;
  /** Inclusive. */
  readonly sinceSeq?: number;
}

/** No engine listens on the socket, or it ended during the call, whose outcome is then unknown. */
export class EngineGone extends PodwrightError {
  constructor(message: string, options: ErrorOptions & { readonly remedy?: string } = {}) {
    super(ExitCode.failed, message, options);
    this.name = "EngineGone";
  }
}

/** The engine answers calls immediately; only a followed journal may be silent for longer. */
const longestSilenceMs = 30_000;
/** Runtimes may be slow to delete images. */
const collectionMs = 600_000;

/**
 * The engine's local API, from another process. Rejects with a `PodwrightError`: the engine's own, {@link EngineGone}, or
 * one for an engine that hangs.
 */
export class EngineClient {
  readonly #transport: EngineTransport;
  readonly #stateDirectory: string;
  readonly #silenceMs: number;
  readonly #owner: StateOwner;

  /** @param silenceMs milliseconds without a byte after which the engine counts as hanging */
  constructor(
    transport: EngineTransport,
    stateDirectory: string,
    silenceMs = longestSilenceMs,
    owner: StateOwner = "run",
  ) {
    this.#transport = transport;
    this.#stateDirectory = stateDirectory;
    this.#silenceMs = silenceMs;
    this.#owner = owner;
  }

  /** What it is, in messages. */
  get what(): "engine" | "kubelet" {
    return this.#owner === "kubelet" ? "kubelet" : "engine";
  }

  /** The remedy when it hangs. */
  get hangRemedy(): string {
    const next =
      this.#owner === "kubelet"
        ? "'podwright kubelet' or its service, when it starts again,"
        : `the next '${ownCommand(this.#stateDirectory, "run")}'`;
    return `see its log; its pods keep running when it is killed, and ${next} takes them over`;
  }

  /** The remedy when it does not run. */
  get startRemedy(): string {
    if (this.#owner === "kubelet") return "start 'podwright kubelet' or its service again; its pods keep running";
    const run = ownCommand(this.#stateDirectory, "run");
    return `'${run}' starts one with its stored pods; '${run} FILE' adds pods`;
  }

  async health(signal?: AbortSignal): Promise<Health> {
    return (await this.#call("GET", "/v1/health", undefined, signal)) as Health;
  }

  async apply(request: ApplyRequest): Promise<readonly AppliedPod[]> {
    return (await this.#call("POST", "/v1/apply", JSON.stringify(request))) as readonly AppliedPod[];
  }

  async plan(request: ApplyRequest | undefined): Promise<Plan> {
    if (request === undefined) return (await this.#call("GET", "/v1/plan")) as Plan;
    return (await this.#call("POST", "/v1/plan", JSON.stringify(request))) as Plan;
  }

  async pods(signal?: AbortSignal): Promise<readonly PodView[]> {
    return (await this.#call("GET", "/v1/pods", undefined, signal)) as readonly PodView[];
  }

  async pod(selector: string): Promise<PodView> {
    return (await this.#call("GET", podPath(selector))) as PodView;
  }

  /** All pods as API objects, with their specs. */
  async podList(): Promise<readonly Pod[]> {
    return ((await this.#call("GET", "/pods")) as { readonly items: readonly Pod[] }).items;
  }

  async evictionPreview(signal: string | undefined): Promise<EvictionPreview> {
    const query = signal === undefined ? "" : `?signal=${encodeURIComponent(signal)}`;
    return (await this.#call("GET", `/v1/evictions${query}`)) as EvictionPreview;
  }

  async confirmEvictions(): Promise<EvictionConfirmation> {
    return (await this.#call("POST", "/v1/evictions/confirm")) as EvictionConfirmation;
  }

  async stop(selector: string, graceSeconds: number | undefined): Promise<PodView> {
    const query = graceSeconds === undefined ? "" : `?grace=${graceSeconds}`;
    return (await this.#call("POST", `${podPath(selector)}/stop${query}`)) as PodView;
  }

  async claims(signal?: AbortSignal): Promise<readonly ClaimView[]> {
    return (await this.#call("GET", "/v1/claims", undefined, signal)) as readonly ClaimView[];
  }

  async freeVolumes(): Promise<readonly FreeVolumeView[]> {
    return (await this.#call("GET", "/v1/free-volumes")) as readonly FreeVolumeView[];
  }

  async removeClaim(namespace: string, name: string): Promise<ClaimRemoval> {
    const key = encodeURIComponent(`${namespace}/${name}`);
    return (await this.#call("POST", `/v1/claims/${key}/remove`, "", undefined, collectionMs)) as ClaimRemoval;
  }

  async retry(selector: string): Promise<PodView> {
    return (await this.#call("POST", `${podPath(selector)}/retry`)) as PodView;
  }

  async previewGarbage(): Promise<GarbageReport> {
    return (await this.#call("GET", "/v1/garbage", undefined, undefined, collectionMs)) as GarbageReport;
  }

  async collectGarbage(): Promise<GarbageReport> {
    return (await this.#call("POST", "/v1/garbage/collect", undefined, undefined, collectionMs)) as GarbageReport;
  }

  async debug(selector: string, request: DebugRequest): Promise<DebugContainer> {
    return (await this.#call("POST", `${podPath(selector)}/debug`, JSON.stringify(request))) as DebugContainer;
  }

  async podRefs(selector: string): Promise<readonly PodRef[]> {
    return (await this.#call("GET", `${podPath(selector)}/refs`)) as readonly PodRef[];
  }

  async entries(filter: JournalFilter): Promise<readonly JournalEntry[]> {
    const entries: JournalEntry[] = [];
    for await (const entry of this.#journal(filter, false, new AbortController().signal)) entries.push(entry);
    return entries;
  }

  /** Ends without an error when the signal aborts; rejects with {@link EngineGone} when the engine stops. */
  async *follow(filter: JournalFilter, signal: AbortSignal): AsyncGenerator<JournalEntry> {
    yield* this.#journal(filter, true, signal);
    if (!signal.aborted) throw this.gone(undefined);
  }

  async shutdown(mode: "keep" | "stop"): Promise<void> {
    await this.#call("POST", `/v1/shutdown?mode=${mode}`);
  }

  async *#journal(filter: JournalFilter, follow: boolean, signal: AbortSignal): AsyncGenerator<JournalEntry> {
    const query = new URLSearchParams();
    if (filter.uid !== undefined) query.set("uid", filter.uid);
    if (filter.sinceSeq !== undefined) query.set("since", String(filter.sinceSeq));
    if (follow) query.set("follow", "true");
    try {
      const limit = follow ? {} : { silenceMs: this.#silenceMs };
      for await (const line of this.#transport.lines(`/v1/journal?${query.toString()}`, { signal, ...limit })) {
        if (line === "") continue;
        const entry = decodeLine(line);
        if (entry === undefined) throw new Error(`the engine sent a line that is not a journal entry: ${line}`);
        yield entry;
      }
    } catch (error) {
      if (signal.aborted) return;
      throw this.#translate(error);
    }
  }

  async #call(
    method: "GET" | "POST",
    path: string,
    body?: string,
    signal?: AbortSignal,
    silenceMs = this.#silenceMs,
  ): Promise<unknown> {
    try {
      const answer = await this.#transport.request(method, path, {
        silenceMs,
        ...(body !== undefined && { body }),
        ...(signal !== undefined && { signal }),
      });
      if (answer.status >= 400) throw answeredError(answer.status, answer.body);
      return JSON.parse(answer.body);
    } catch (error) {
      throw this.#translate(error);
    }
  }

  #translate(error: unknown): unknown {
    const code = errorCode(error);
    if (code === "EACCES" || code === "EPERM") {
      const message = `permission denied on the socket of the engine for ${this.#stateDirectory}`;
      return new PodwrightError(ExitCode.environment, message, { cause: error, remedy: "run this command as root" });
    }
    if (code === "ETIMEDOUT") {
      const message = `the ${this.what} for ${this.#stateDirectory} hangs: no response for ${formatDuration(this.#silenceMs)}`;
      return new PodwrightError(ExitCode.failed, message, { cause: error, remedy: this.hangRemedy });
    }
    return code !== undefined && lostCodes.has(code) ? this.gone(error) : error;
  }

  /** What a lost or refused connection means. */
  gone(cause: unknown): EngineGone {
    const code = errorCode(cause);
    const never = code === "ENOENT" || code === "ECONNREFUSED";
    const message = never
      ? `no ${this.what} runs for ${this.#stateDirectory}`
      : `the ${this.what} for ${this.#stateDirectory} stopped`;
    return new EngineGone(message, { cause, remedy: this.startRemedy });
  }
}

function errorCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

const lostCodes: ReadonlySet<string> = new Set(["ENOENT", "ECONNREFUSED", "ECONNRESET", "EPIPE"]);

function podPath(selector: string): string {
  return `/v1/pods/${encodeURIComponent(selector)}`;
}
