import type { ApiResponse } from "../ports/api-server.ts";
import type { HealthzCheck } from "../server/healthz.ts";
import { plain } from "./answers.ts";
import { ApiError } from "./api-error.ts";

export interface HealthDependencies {
  /** The node's own loops, which decide about its health. */
  readonly health: () => readonly HealthzCheck[];
  /** Dependencies that may be away for a while: reported, without effect on the result. */
  readonly surroundings: () => readonly HealthzCheck[];
}

/**
 * `/healthz`: healthy when every check is. `?verbose` lists all, `?exclude=<check>` skips one; `/healthz/<check>` is a
 * single one. As upstream, `syncloop` stands for all of the node's loops, and `ping` and `log` only report that the
 * process responds.
 */
export function healthz(
  { health, surroundings }: HealthDependencies,
  rest: readonly string[],
  query: URLSearchParams,
): ApiResponse {
  const [name = "", ...more] = rest;
  if (more.length > 0) throw new ApiError(404, "404 page not found\n");
  if (name === "ping" || name === "log") return plain(200, "ok");
  if (name === "" || name === "syncloop") return all(health(), surroundings(), query);
  const check = [...health(), ...surroundings()].find((candidate) => candidate.name === name);
  if (check === undefined) throw new ApiError(404, "404 page not found\n");
  return check.ok ? plain(200, "ok") : plain(500, `internal server error: ${check.detail}\n`);
}

function all(
  checks: readonly HealthzCheck[],
  surroundings: readonly HealthzCheck[],
  query: URLSearchParams,
): ApiResponse {
  const excluded = query.getAll("exclude");
  const counting = checks.filter(({ name }) => !excluded.includes(name));
  const unknown = excluded.filter((name) => !["ping", "log", ...checks.map((check) => check.name)].includes(name));
  const lines = [
    ...["ping", "log"].map((name) => (excluded.includes(name) ? `[+]${name} excluded: ok\n` : `[+]${name} ok\n`)),
    ...checks.map((check) => (excluded.includes(check.name) ? `[+]${check.name} excluded: ok\n` : line(check))),
    ...surroundings.map(line),
    ...(unknown.length === 0
      ? []
      : [`warn: some health checks cannot be excluded: no matches for ${unknown.map((name) => `"${name}"`).join()}\n`]),
  ].join("");
  if (counting.some(({ ok }) => !ok)) return plain(500, `${lines}healthz check failed\n`);
  return plain(200, query.has("verbose") ? `${lines}healthz check passed\n` : "ok");
}

function line({ name, ok, detail }: HealthzCheck): string {
  return `[${ok ? "+" : "-"}]${name} ${ok ? "ok" : "failed"}: ${detail}\n`;
}
