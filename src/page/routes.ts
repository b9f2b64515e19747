import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import { podUid } from "../base/ids.ts";
import type { ApiErrorBody, ApiHandler, ApiRequest, ApiResponse } from "../ports/api-server.ts";
import type { PageAssets } from "../ports/node-page.ts";
import type { NodePage } from "./node-page.ts";

const root = "/ui";

/**
 * Isolates the page: it loads only its own files, runs no script in markup, cannot be framed, and sends no referrer to
 * other sites. So the names that a pod chooses cannot take effect in it.
 */
export const pageHeaders: Readonly<Record<string, string>> = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cache-Control": "no-store",
};

/** True for what {@link pageRoutes} answers. */
export function isPagePath(path: string): boolean {
  return path === root || path.startsWith(`${root}/`);
}

/**
 * The node page below `/ui/`: its files and data.
 * @param assets read on first use
 */
export function pageRoutes(page: NodePage, assets: () => Promise<PageAssets>): ApiHandler {
  const data = pageData(page);
  const files = pageFiles(assets);
  return async (request) => (isDataPath(request.path) ? await data(request) : await files(request));
}

/** Requests for the page to the one, others to the other. */
export function withPage<R extends ApiRequest, A>(
  others: (request: R) => Promise<A>,
  page: ApiHandler,
): (request: R) => Promise<A | ApiResponse> {
  return async (request) => (isPagePath(request.path) ? await page(request) : await others(request));
}

/** True for data of this node, which requires access; the page's files do not. */
export function isDataPath(path: string): boolean {
  return path.startsWith(`${root}/api/`);
}

/** The files alone. */
export function pageFiles(assets: () => Promise<PageAssets>): ApiHandler {
  return async ({ method, path }) => {
    if (method !== "GET" && method !== "HEAD") return problem(405, `${path} does not support ${method}`);
    // Relative, because a proxy may have added a prefix to the path.
    if (path === root) return { ...answer(308, "text/plain; charset=utf-8", ""), headers: moved };
    const name = path === `${root}/` ? "index.html" : path.slice(root.length + 1);
    const asset = (await assets()).get(name);
    return asset === undefined ? problem(404, `${path} not found`) : answer(200, asset.contentType, asset.text);
  };
}

const moved = { ...pageHeaders, Location: "ui/" };

function pageData(page: NodePage): ApiHandler {
  return async ({ method, path, query, signal }) => {
    if (method !== "GET") return problem(405, `${path} does not support ${method}`);
    if (path === `${root}/api/evictions`) {
      return await previewed(async () => await page.evictions(query.get("signal") ?? undefined));
    }
    if (path === `${root}/api/garbage`) return await previewed(async () => await page.garbage(signal));
    if (path === `${root}/api/events`) {
      if (page.isFull) return problem(503, "too many open pages of this node");
      // A proxy on the way shall pass events on as they come.
      return { ...answer(200, "text/event-stream", ""), headers: unbuffered, body: page.events(signal) };
    }
    const uid = /^\/ui\/api\/pods\/([^/]+)\/life$/.exec(path)?.[1];
    const life = uid === undefined ? undefined : page.life(podUid(decoded(uid)));
    if (life === undefined) return problem(404, `${path} not found`);
    return answer(200, "application/json", JSON.stringify(life));
  };
}

async function previewed(preview: () => Promise<unknown>): Promise<ApiResponse> {
  try {
    return answer(200, "application/json", JSON.stringify(await preview()));
  } catch (error) {
    const isRefused = error instanceof PodwrightError && error.exitCode === ExitCode.badInput;
    return problem(isRefused ? 400 : 500, errorMessage(error));
  }
}

const unbuffered = { ...pageHeaders, "X-Accel-Buffering": "no" };

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return "";
  }
}

function answer(status: number, contentType: string, body: string): ApiResponse {
  return { status, contentType, headers: pageHeaders, body };
}

function problem(status: number, error: string): ApiResponse {
  const body: ApiErrorBody = { error };
  return answer(status, "application/json", JSON.stringify(body));
}
