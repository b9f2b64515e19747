import type { ApiResponse } from "../ports/api-server.ts";
import type { HealthzCheck } from "../server/healthz.ts";
import { plain } from "./answers.ts";
import { ApiError } from "./api-error.ts";

/**
 * `/healthz`: well when every check is. `?verbose` tells each; `/healthz/<check>` one alone. As upstream `syncloop`
 * stands for all of the node's loops, and `ping` and `log` say only that the process answers.
 */
export function healthz(checks: readonly HealthzCheck[], rest: readonly string[], query: URLSearchParams): ApiResponse {
  const [name = ""] = rest;
  const failing = checks.filter(({ ok }) => !ok);
  if (name === "ping" || name === "log") return plain(200, "ok");
  if (name === "" || name === "syncloop") {
    const lines = checks.map(
      ({ name: check, ok, detail }) => `[${ok ? "+" : "-"}]${check} ${ok ? "ok" : "failed"}: ${detail}\n`,
    );
    if (failing.length > 0) return plain(500, `${lines.join("")}healthz check failed\n`);
    return plain(200, query.has("verbose") ? `[+]ping ok\n[+]log ok\n${lines.join("")}healthz check passed\n` : "ok");
  }
  const check = checks.find((candidate) => candidate.name === name);
  if (check === undefined) throw new ApiError(404, "404 page not found\n");
  return check.ok ? plain(200, "ok") : plain(500, `internal server error: ${check.detail}\n`);
}
