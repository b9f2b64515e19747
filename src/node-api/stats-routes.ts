import { expose, expositionType, takesGzip } from "../metrics/exposition.ts";
import type { Family } from "../metrics/family.ts";
import type { ApiResponse } from "../ports/api-server.ts";
import type { Compression } from "../ports/compression.ts";
import type { NodeHandler, NodeRequest } from "../ports/node-server.ts";
import type { Summary } from "../stats/summary-types.ts";
import { json, plain } from "./answers.ts";

/** A node's monitoring endpoints. */
export interface NodeFigures {
  summary(onlyCpuAndMemory: boolean): Promise<Summary>;
  /** By path: `/metrics`, `/metrics/resource` … */
  readonly families: Readonly<Record<string, () => Promise<Family[]>>>;
  /** DELETE of `/metrics/slis` */
  resetSlis(): void;
}

/** Paths of metrics, for the list of all paths. */
export const figurePaths: readonly string[] = [
  ...["/metrics", "/metrics/cadvisor", "/metrics/probes", "/metrics/resource", "/metrics/slis"],
  "/stats/summary",
];

/** Serves `/stats/summary` and the metrics; passes everything else on. */
export function withFigures(
  figures: NodeFigures,
  compression: Pick<Compression, "gzipText">,
  handler: NodeHandler,
): NodeHandler {
  return async (request) => (await figuresAnswer(figures, compression, request)) ?? (await handler(request));
}

async function figuresAnswer(
  figures: NodeFigures,
  compression: Pick<Compression, "gzipText">,
  request: NodeRequest,
): Promise<ApiResponse | undefined> {
  const path = request.path.length > 1 ? request.path.replace(/\/$/u, "") : request.path;
  if (path === "/stats/summary") return await summary(figures, request);
  const families = Object.hasOwn(figures.families, path) ? figures.families[path] : undefined;
  if (families === undefined) return undefined;
  if (path === "/metrics/slis" && request.method === "DELETE") {
    figures.resetSlis();
    return plain(200, "metrics reset\n");
  }
  if (request.method !== "GET") return notAllowed("GET");
  const body = expose(await families());
  const answer = { status: 200, contentType: expositionType, headers: { Vary: "Accept-Encoding" } };
  if (!takesGzip(request.headers["accept-encoding"])) return { ...answer, body };
  const headers = { ...answer.headers, "Content-Encoding": "gzip" };
  return { ...answer, headers, body: once(await compression.gzipText(body)) };
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

async function summary(figures: NodeFigures, request: NodeRequest): Promise<ApiResponse> {
  if (request.method !== "GET" && request.method !== "POST") return notAllowed("GET, POST");
  const form = request.method === "POST" ? new URLSearchParams(await request.body()) : new URLSearchParams();
  const wanted = [...request.query.getAll("only_cpu_and_memory"), ...form.getAll("only_cpu_and_memory")];
  return json(await figures.summary(wanted.length === 1 && wanted[0] === "true"));
}

function notAllowed(allow: string): ApiResponse {
  return plain(405, "405: Method Not Allowed", { Allow: allow });
}
