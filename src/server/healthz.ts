import type { ApiHandler, ApiResponse } from "../ports/api-server.ts";

/** A node check, from the engine's health. */
export interface HealthzCheck {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
}

/**
 * Upstream's endpoints on port 10248: `/healthz` and `/healthz/ping` only report that the process answers. In addition
 * `/healthz/syncloop` fails when the node's loops are stuck, which upstream serves on port 10250.
 */
export function healthzRoutes(checks: () => readonly HealthzCheck[]): ApiHandler {
  return async ({ path, query }) => {
    switch (path) {
      case "/healthz":
        return text(200, query.has("verbose") ? "[+]ping ok\nhealthz check passed\n" : "ok");
      case "/healthz/ping":
        return text(200, "ok");
      case "/healthz/syncloop": {
        const failing = checks().filter(({ ok }) => !ok);
        if (failing.length === 0) return text(200, "ok");
        const reasons = failing.map(({ name, detail }) => `${name}: ${detail}`).join("; ");
        return text(500, `internal server error: ${reasons}\n`);
      }
      default:
        return text(404, "404 page not found\n");
    }
  };
}

function text(status: number, body: string): ApiResponse {
  return { status, contentType: "text/plain; charset=utf-8", body };
}
