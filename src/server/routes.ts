import { ExitCode, PodwrightError } from "../base/errors.ts";
import { podUid } from "../base/ids.ts";
import type { JournalEntry } from "../journal/entry.ts";
import type { ApiErrorBody, ApiHandler, ApiRequest, ApiResponse } from "../ports/api-server.ts";
import type { ApplyRequest, DebugRequest, LocalApi } from "./local-api.ts";

type RouteHandler = (request: ApiRequest, selector: string) => ApiResponse | Promise<ApiResponse>;

interface Route {
  readonly method: "GET" | "POST";
  /** `*` matches one segment, passed decoded to the handler. */
  readonly path: readonly string[];
  readonly handle: RouteHandler;
}

/** The engine's Unix socket: each request is one call of {@link Engine}. */
export function localApiRoutes(api: LocalApi): ApiHandler {
  const routes: readonly Route[] = [
    route("GET", "/v1/health", () => json(api.health())),
    route("POST", "/v1/apply", async (request) => json(await api.apply(applyRequest(await request.body())))),
    route("GET", "/v1/plan", async () => json(await api.plan(undefined))),
    route("POST", "/v1/plan", async (request) => json(await api.plan(applyRequest(await request.body())))),
    route("GET", "/v1/pods", () => json(api.pods())),
    route("GET", "/v1/pods/*", (_request, selector) => json(api.pod(selector))),
    route("POST", "/v1/pods/*/stop", async (request, selector) => {
      return json(await api.stop(selector, graceSeconds(request.query)));
    }),
    route("POST", "/v1/pods/*/retry", (_request, selector) => json(api.retry(selector))),
    route("GET", "/v1/claims", () => json(api.claims())),
    route("GET", "/v1/free-volumes", () => json(api.freeVolumes())),
    route("POST", "/v1/claims/*/remove", async (_request, key) => {
      const [namespace = "", name = ""] = key.split("/");
      return json(await api.removeClaim(namespace, name));
    }),
    route("GET", "/v1/garbage", async ({ signal }) => json(await api.previewGarbage(signal))),
    route("POST", "/v1/garbage/collect", async ({ signal }) => json(await api.collectGarbage(signal))),
    route("POST", "/v1/pods/*/debug", async (request, selector) => {
      return json(await api.debug(selector, debugRequest(await request.body())));
    }),
    route("GET", "/v1/pods/*/refs", (_request, selector) => json(api.podRefs(selector))),
    route("GET", "/v1/evictions", async ({ query }) =>
      json(await api.evictionPreview(query.get("signal") ?? undefined)),
    ),
    route("POST", "/v1/evictions/confirm", async () => json(await api.confirmEvictions())),
    route("GET", "/v1/journal", (request) => journal(api, request)),
    route("POST", "/v1/shutdown", async (request) => {
      await api.shutdown(shutdownMode(request.query));
      return json({});
    }),
  ];
  return async (request) => {
    const segments = decodeSegments(request.path);
    const matching = routes.filter((candidate) => matches(candidate.path, segments));
    if (matching.length === 0) return errorResponse(404, `${request.path} not found`);
    const found = matching.find((candidate) => candidate.method === request.method);
    if (found === undefined) return errorResponse(405, `${request.path} does not support ${request.method}`);
    return found.handle(request, segments?.[found.path.indexOf("*")] ?? "");
  };
}

function route(method: Route["method"], path: string, handle: RouteHandler): Route {
  return { method, path: path.slice(1).split("/"), handle };
}

/** Undefined when the percent-encoding is broken. */
function decodeSegments(path: string): string[] | undefined {
  try {
    return path.slice(1).split("/").map(decodeURIComponent);
  } catch {
    return undefined;
  }
}

function matches(path: readonly string[], segments: readonly string[] | undefined): boolean {
  if (segments?.length !== path.length) return false;
  return path.every((part, index) => (part === "*" ? segments[index] !== "" : part === segments[index]));
}

function json(value: unknown): ApiResponse {
  return { status: 200, contentType: "application/json", body: JSON.stringify(value) };
}

function errorResponse(status: number, message: string): ApiResponse {
  const body: ApiErrorBody = { error: message, exitCode: ExitCode.badInput };
  return { status, contentType: "application/json", body: JSON.stringify(body) };
}

function badRequest(message: string): PodwrightError {
  return new PodwrightError(ExitCode.badInput, message);
}

/** Only the outer shape: the engine decodes and validates each object. */
function applyRequest(body: string): ApplyRequest {
  const value = jsonBody(body);
  const lists: Record<string, unknown> = typeof value === "object" && value !== null ? { ...value } : {};
  for (const name of ["pods", "configMaps", "secrets"]) {
    if (!Array.isArray(lists[name])) throw badRequest(`the body must hold the lists pods, configMaps and secrets`);
  }
  if (!Array.isArray(lists["storage"] ?? [])) throw badRequest("storage must be a list");
  if (typeof (lists["runsAgain"] ?? false) !== "boolean") throw badRequest("runsAgain must be true or false");
  return value as ApplyRequest;
}

function debugRequest(body: string): DebugRequest {
  const value = jsonBody(body);
  const fields: Record<string, unknown> = typeof value === "object" && value !== null ? { ...value } : {};
  const { image, target, command } = fields;
  const isText = (text: unknown): boolean => typeof text === "string";
  const names = [image, target].filter((name) => name !== undefined);
  if (!names.every(isText) || !Array.isArray(command) || !command.every(isText)) {
    throw badRequest("the body must hold a command as a list of strings, and may hold image and target");
  }
  return value as DebugRequest;
}

function jsonBody(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    throw badRequest("the body is not JSON");
  }
}

function graceSeconds(query: URLSearchParams): number | undefined {
  return wholeNumber(query, "grace");
}

function wholeNumber(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === "") return undefined;
  if (!/^\d{1,15}$/.test(text)) throw badRequest(`${name} must be an integer`);
  return Number(text);
}

function shutdownMode(query: URLSearchParams): "keep" | "stop" {
  const mode = query.get("mode") ?? "keep";
  if (mode !== "keep" && mode !== "stop") throw badRequest("mode must be keep or stop");
  return mode;
}

/** Newline-delimited JSON: existing entries from `since` on, and with `follow=true` new ones. */
function journal(api: LocalApi, request: ApiRequest): ApiResponse {
  const uid = request.query.get("uid");
  const sinceSeq = wholeNumber(request.query, "since");
  const filter = {
    ...(uid !== null && uid !== "" && { uid: podUid(uid) }),
    ...(sinceSeq !== undefined && { sinceSeq }),
  };
  const follow = request.query.get("follow") === "true";
  const entries = follow ? api.follow(filter, request.signal) : api.entries(filter);
  return { status: 200, contentType: "application/x-ndjson", body: lines(entries) };
}

async function* lines(entries: Iterable<JournalEntry> | AsyncIterable<JournalEntry>): AsyncGenerator<string> {
  for await (const entry of entries) yield `${JSON.stringify(entry)}\n`;
}
