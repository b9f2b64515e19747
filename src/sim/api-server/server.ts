import { Emitter } from "../../base/emitter.ts";
import type { SimClock } from "../clock.ts";
import { keyOf, Registry } from "./registry.ts";
import { type ApiCallParts, parseRequest } from "./request.ts";
import { selectorOf } from "./selectors.ts";
import type { Stored } from "./store.ts";
import { fieldsAt, type Fields, isFields, Refusal } from "./values.ts";
import { Watch, type WatchSink } from "./watch.ts";
import type { KubeRequest } from "../../ports/kube-api.ts";

export interface Answer {
  readonly code: number;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Properties of a server, apart from faults. */
export interface ServerSettings {
  readonly clock: SimClock;
  /** Its wall clock offset from the node's at the beginning. */
  readonly skewMs: number;
  /** It supports streaming lists (KEP-3157). */
  readonly streamsLists: boolean;
  /** Maximum number of objects in a page, whatever clients request. */
  readonly pageSize: number;
}

/** A request that was served or rejected. */
export interface Served {
  readonly call: ApiCallParts;
  readonly body: Fields | undefined;
  readonly code: number;
  /** The rejection's message; empty: served. */
  readonly message: string;
  /** The named object before the request. */
  readonly before: Stored | undefined;
}

/** When continued lists and watches must start again. */
interface Page {
  readonly version: number;
  readonly after: string;
}

const bookmarkMs = 60_000;
const tokenSeconds = 3600;

/**
 * A model of kube-apiserver: the operations of a kubelet and its cluster's controllers on Pods, Nodes, Leases, Events,
 * ConfigMaps, Secrets, Services, RuntimeClasses, service account tokens and what belongs to volumes, with versions, pages,
 * watches, bookmarks and compaction. It responds at once and correctly; faults belong to the connection.
 */
export class SimApiServer {
  readonly registry: Registry;
  readonly #settings: ServerSettings;
  /** Its wall clock, ms. */
  readonly #now: () => number;
  readonly #watches = new Set<Watch>();
  readonly #served = new Emitter<Served>();
  readonly #haste = new Emitter<string>();
  readonly #connections = new Set<() => void>();
  #down: "refuses" | "silent" | undefined;
  #tokens = 0;

  constructor(settings: ServerSettings) {
    this.#settings = settings;
    const { clock, skewMs } = settings;
    // Jumps of the node's clock do not affect the server.
    const offsetMs = clock.wallMs - clock.nowMs + skewMs;
    this.#now = () => clock.nowMs + offsetMs;
    this.registry = new Registry(this.#now);
    settings.clock.schedule("bookmarks of the simulated API server", bookmarkMs, () => this.#bookmarks());
  }

  /** Why it does not respond. */
  get down(): "refuses" | "silent" | undefined {
    return this.#down;
  }

  /** Stops it, with all connections. */
  goDown(how: "refuses" | "silent"): void {
    this.#down = how;
    for (const watch of [...this.#watches]) watch.stop();
    this.#watches.clear();
    for (const cut of [...this.#connections]) cut();
  }

  /** The number of open watches of a resource. */
  watchesOf(resource: string): number {
    return [...this.#watches].filter((watch) => watch.resource === resource).length;
  }

  /** @param compacted it has lost its history */
  comeUp(compacted: boolean): void {
    this.#down = undefined;
    if (compacted) this.registry.store.compact();
  }

  /** Calls back when the server stops. */
  onDown(cut: () => void): Disposable {
    this.#connections.add(cut);
    return { [Symbol.dispose]: () => void this.#connections.delete(cut) };
  }

  /** Calls back after each served request. */
  onServed(listener: (served: Served) => void): void {
    this.#served.on(listener);
  }

  /** Calls back with each request that is repeated before its Retry-After. */
  onHaste(listener: (what: string) => void): void {
    this.#haste.on(listener);
  }

  /** A request was repeated too soon. */
  hasty(what: string): void {
    this.#haste.emit(what);
  }

  /**
   * Responds to a request other than a watch.
   * @param staleVersion the version for lists
   */
  serve(request: KubeRequest, staleVersion?: number): Answer {
    let body: Fields | undefined;
    let call: ApiCallParts | undefined;
    let answer: Answer;
    let before: Stored | undefined;
    let message = "";
    try {
      call = parseRequest(request);
      body = bodyOf(request);
      before = this.registry.store.get(call.resource, keyOf(call.namespace, call.name ?? ""));
      answer = ok(this.#serve(call, body, request.headers["content-type"], staleVersion), call.method);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      answer = refused(error);
      message = error.message;
    }
    if (call === undefined) throw new Error(`no API server has ${request.path}`);
    this.#served.emit({ call, body, code: answer.code, message, before });
    return answer;
  }

  /**
   * Begins a watch. @throws Refusal
   * @returns ends it from the client's side
   */
  watch(call: ApiCallParts, sink: WatchSink): Watch {
    const { query, resource } = call;
    const initial = query.get("sendInitialEvents") === "true";
    if (initial && !this.#settings.streamsLists) {
      throw new Refusal(
        422,
        "Invalid",
        "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
      );
    }
    const since = initial ? undefined : versionOf(query.get("resourceVersion"));
    const bookmarks = query.get("allowWatchBookmarks") === "true";
    const watch = new Watch(this.registry.store, { resource, selects: selectorOf(call), since, bookmarks }, sink);
    watch.start();
    this.#watches.add(watch);
    const seconds = Number(query.get("timeoutSeconds") ?? 1800);
    this.#settings.clock.schedule("the end of a watch", seconds * 1000, () => {
      if (!this.#watches.delete(watch)) return;
      watch.bookmark();
      watch.end();
    });
    return watch;
  }

  /** The client has disconnected. */
  forget(watch: Watch): void {
    watch.stop();
    this.#watches.delete(watch);
  }

  #serve(
    call: ApiCallParts,
    body: Fields | undefined,
    type: string | undefined,
    staleVersion: number | undefined,
  ): string {
    const { method, resource, namespace, name, subresource } = call;
    const { registry } = this;
    if (subresource === "token" && method === "POST") return this.#token(body);
    if (name === undefined) {
      if (method === "POST") return registry.create(resource, namespace, body ?? {}).text;
      if (method === "GET") return this.#list(call, staleVersion);
      throw notAllowed(call);
    }
    const place = { resource, namespace, name };
    switch (method) {
      case "GET":
        return registry.get(place).text;
      case "PUT":
        return registry.change(place, "replace", body ?? {}, subresource).text;
      case "PATCH":
        return registry.change(place, patchOf(type), body ?? {}, subresource).text;
      case "DELETE":
        return registry.delete(place, body ?? {}).text;
      default:
        throw notAllowed(call);
    }
  }

  #list(call: ApiCallParts, staleVersion: number | undefined): string {
    const { store } = this.registry;
    const { resource, query } = call;
    const page = pageOf(query.get("continue"));
    const version = page?.version ?? staleVersion ?? store.version;
    const selects = selectorOf(call);
    const all = store
      .at(resource, version)
      .filter(({ value }) => selects(value))
      .toSorted((a, b) => (a.key < b.key ? -1 : 1));
    const rest = page === undefined ? all : all.filter(({ key }) => key > page.after);
    const limit = query.has("limit") ? Math.min(Number(query.get("limit")), this.#settings.pageSize) : rest.length;
    const items = rest.slice(0, limit);
    const last: Stored | undefined = items.at(-1);
    const isCut = rest.length > items.length && last !== undefined;
    const metadata = { resourceVersion: String(version), ...(isCut && { continue: `${version} ${last.key}` }) };
    return `{"kind":"List","apiVersion":"v1","metadata":${JSON.stringify(metadata)},"items":[${items.map(({ text }) => text).join(",")}]}`;
  }

  #token(body: Fields | undefined): string {
    const { expirationSeconds = tokenSeconds } = fieldsAt(body ?? {}, "spec");
    const expiresMs = this.#now() + Number(expirationSeconds) * 1000;
    const token = `hunter2-token-${++this.#tokens}`;
    return JSON.stringify({
      kind: "TokenRequest",
      apiVersion: "authentication.k8s.io/v1",
      metadata: {},
      spec: { expirationSeconds },
      status: { token, expirationTimestamp: new Date(expiresMs).toISOString() },
    });
  }

  #bookmarks(): void {
    for (const watch of this.#watches) watch.bookmark();
    this.#settings.clock.schedule("bookmarks of the simulated API server", bookmarkMs, () => this.#bookmarks());
  }
}

function bodyOf({ body }: KubeRequest): Fields | undefined {
  if (body === undefined) return undefined;
  const value: unknown = JSON.parse(body);
  if (!isFields(value)) throw new Refusal(400, "BadRequest", "the body is no object");
  return value;
}

function patchOf(type: string | undefined): "strategic" | "merge" {
  if (type === "application/strategic-merge-patch+json") return "strategic";
  if (type === "application/merge-patch+json") return "merge";
  throw new Refusal(415, "UnsupportedMediaType", `the body of the request was in an unknown format: ${type ?? "none"}`);
}

function notAllowed({ method, resource }: ApiCallParts): Refusal {
  return new Refusal(405, "MethodNotAllowed", `${method} is not allowed on ${resource}`);
}

function versionOf(text: string | null): number {
  const version = Number(text ?? Number.NaN);
  if (!Number.isInteger(version)) throw new Refusal(400, "BadRequest", `resourceVersion: Invalid value: ${text}`);
  return version;
}

function pageOf(token: string | null): Page | undefined {
  if (token === null) return undefined;
  const [, version, after = ""] = /^(\d+) (.*)$/u.exec(token) ?? [];
  if (version === undefined) throw new Refusal(400, "BadRequest", "continue: Invalid value");
  return { version: Number(version), after };
}

function ok(body: string, method: string): Answer {
  return { code: method === "POST" ? 201 : 200, body, headers: { "content-type": "application/json" } };
}

/** The response for a rejection. */
export function refused(refusal: Refusal): Answer {
  const { retryAfterSeconds: seconds } = refusal;
  const headers = {
    "content-type": "application/json",
    ...(seconds !== undefined && { "retry-after": String(seconds) }),
  };
  return { code: refusal.code, body: JSON.stringify(refusal.status()), headers };
}
