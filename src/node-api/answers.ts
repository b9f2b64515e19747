import type { ApiResponse } from "../ports/api-server.ts";

export function plain(status: number, body: string): ApiResponse {
  return { status, contentType: "text/plain; charset=utf-8", headers: { "X-Content-Type-Options": "nosniff" }, body };
}

export function json(value: unknown): ApiResponse {
  return { status: 200, contentType: "application/json", body: JSON.stringify(value) };
}
