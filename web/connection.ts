import type { ChangeEvent, GaugesEvent, HelloEvent, LifeView } from "../src/page/view.ts";
import { EventParser, type ServerEvent } from "./events.ts";

/** How the page stands with the node. */
export type Link =
  | { readonly state: "connecting" }
  | { readonly state: "live" }
  /** It does not answer, or answers that something is missing. It is tried again. */
  | { readonly state: "lost"; readonly problem: string; readonly remedy: string }
  /** It does not let this page in. */
  | { readonly state: "refused"; readonly problem: string; readonly remedy: string };

/** A response, or why there is none. */
export type Preview<T> = { readonly at: number; readonly view: T } | { readonly at: number; readonly problem: string };

export interface Listener {
  hello(event: HelloEvent): void;
  change(event: ChangeEvent): void;
  gauges(event: GaugesEvent): void;
  link(link: Link): void;
}

/** Something comes every 2 s: after this the connection is dead. */
const silenceMs = 12_000;
/** The node may have to measure what pods store, and to list images. */
const previewLimitMs = 60_000;
const firstRetryMs = 500;
const longestRetryMs = 5000;
const sessionTries = 5;
const sessionKey = "podwright session";

/** Keeps a stream of events open, for as long as the page is. */
export class Connection {
  readonly #listener: Listener;
  #session: string | undefined;
  #retryMs = firstRetryMs;

  constructor(listener: Listener) {
    this.#listener = listener;
  }

  /** Never ends, unless the page is refused. */
  async run(): Promise<void> {
    this.#session = await openSession();
    let first = true;
    for (;;) {
      if (first) this.#listener.link({ state: "connecting" });
      first = false;
      const ended = await this.#stream();
      this.#listener.link(ended);
      if (ended.state === "refused") return;
      await pause(this.#retryMs);
      this.#retryMs = Math.min(longestRetryMs, this.#retryMs * 2);
    }
  }

  /** A pod's life; undefined when it can't be had now. */
  async life(uid: string): Promise<LifeView | undefined> {
    try {
      const response = await this.#get(`api/pods/${encodeURIComponent(uid)}/life`, AbortSignal.timeout(silenceMs));
      return response.ok ? ((await response.json()) as LifeView) : undefined;
    } catch {
      return undefined;
    }
  }

  /** What `api/<name>` previews, or why it can't be had. */
  async preview<T>(name: "evictions" | "garbage"): Promise<Preview<T>> {
    const at = Date.now();
    try {
      const response = await this.#get(`api/${name}`, AbortSignal.timeout(previewLimitMs));
      const answer: unknown = await response.json();
      return response.ok ? { at, view: answer as T } : { at, problem: (answer as { readonly error: string }).error };
    } catch {
      return { at, problem: "The node does not answer." };
    }
  }

  async #get(path: string, signal: AbortSignal): Promise<Response> {
    const headers = this.#session === undefined ? {} : { Authorization: `Bearer ${this.#session}` };
    return await fetch(path, { headers, signal, cache: "no-store", credentials: "same-origin" });
  }

  /** Reads one stream to its end and says why it ended. */
  async #stream(): Promise<Exclude<Link, { readonly state: "connecting" | "live" }>> {
    const controller = new AbortController();
    let watchdog = 0;
    const alive = (): void => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => controller.abort(), silenceMs);
    };
    try {
      alive();
      const response = await this.#get("api/events", controller.signal);
      if (!response.ok || response.body === null) return await refusal(response);
      const parser = new EventParser();
      let problem: Problem | undefined;
      const decoder = new TextDecoder();
      const reader = response.body.getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        alive();
        const events = parser.push(decoder.decode(value, { stream: true }));
        for (const event of events) problem = this.#take(event) ?? problem;
      }
      const { error = "podwright has stopped or is unreachable.", remedy = "" } = problem ?? {};
      return { state: "lost", problem: error, remedy };
    } catch {
      return { state: "lost", problem: "podwright does not answer.", remedy: "" };
    } finally {
      clearTimeout(watchdog);
      controller.abort();
    }
  }

  /** Returns what is in the way, if that is what the event tells. */
  #take({ event, data }: ServerEvent): Problem | undefined {
    if (event === "problem") return JSON.parse(data) as Problem;
    if (event === "hello") {
      this.#retryMs = firstRetryMs;
      this.#listener.hello(JSON.parse(data) as HelloEvent);
      this.#listener.link({ state: "live" });
    } else if (event === "change") this.#listener.change(JSON.parse(data) as ChangeEvent);
    else if (event === "gauges") this.#listener.gauges(JSON.parse(data) as GaugesEvent);
    return undefined;
  }
}

async function refusal(response: Response): Promise<Exclude<Link, { readonly state: "connecting" | "live" }>> {
  const { error, remedy = "" } = await told(response);
  const problem = error ?? `The response is ${response.status}.`;
  return { state: response.status === 401 || response.status === 403 ? "refused" : "lost", problem, remedy };
}

async function pause(ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  setTimeout(resolve, ms);
  await promise;
}

interface Problem {
  readonly error?: string;
  readonly remedy?: string;
}

async function told(response: Response): Promise<Problem> {
  try {
    return (await response.json()) as Problem;
  } catch {
    return {};
  }
}

/**
 * The link that `podwright ui` prints contains a code that opens one session. It is exchanged at once and removed from
 * the address, so that neither the history nor a screenshot reveals it. If the page is served to others, there is none.
 */
async function openSession(): Promise<string | undefined> {
  const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1];
  if (code === undefined) return sessionStorage.getItem(sessionKey) ?? undefined;
  history.replaceState(undefined, "", location.pathname);
  for (let tries = 0; tries < sessionTries; tries++) {
    try {
      const response = await fetch("session", { method: "POST", body: code });
      const { session } = (await response.json()) as { readonly session?: string };
      if (response.ok && session !== undefined) sessionStorage.setItem(sessionKey, session);
      break;
    } catch {
      // Browsers drop requests when the machine's network changes, as it does when pods come and go.
      await pause(firstRetryMs);
    }
  }
  // Without one the stream will say what is wrong.
  return sessionStorage.getItem(sessionKey) ?? undefined;
}
