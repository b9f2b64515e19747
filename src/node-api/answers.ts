import type { ApiResponse } from "../ports/api-server.ts";

/** @param headers in addition to those that prevent content sniffing */
export function plain(status: number, body: string, headers: ApiResponse["headers"] = {}): ApiResponse {
  const all = { ...headers, "X-Content-Type-Options": "nosniff" };
  return { status, contentType: "text/plain; charset=utf-8", headers: all, body };
}

export function json(value: unknown): ApiResponse {
  return { status: 200, contentType: "application/json", body: JSON.stringify(value) };
}
