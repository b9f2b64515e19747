import type { Exchange } from "./exchange.ts";
import type { RequestInfo } from "./request-info.ts";

/** A received request, for tests that count or time them. */
export interface RequestRecord {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  /** For a resource: `patch pods/status`. */
  readonly what: string;
  readonly user: string;
  readonly userAgent: string;
  /** 1.1 or 2.0 */
  readonly httpVersion: string;
  /** `performance.now()` at its arrival. */
  readonly atMs: number;
  /** The response's warnings: dropped unknown members. */
  readonly warnings: readonly string[];
  /** Undefined without a response (yet). */
  readonly code: number | undefined;
}

const kept = 20_000;

/** The latest requests, oldest first. */
export class RequestLog {
  #records: { readonly exchange: Exchange; readonly info: RequestInfo | undefined; readonly atMs: number }[] = [];

  add(exchange: Exchange, info: RequestInfo | undefined): void {
    if (this.#records.length >= kept) this.#records.splice(0, kept / 10);
    this.#records.push({ exchange, info, atMs: performance.now() });
  }

  /** @param what a filter such as `patch pods/status` */
  list(what?: string): RequestRecord[] {
    const all = this.#records.map(({ exchange, info, atMs }): RequestRecord => {
      const subresource = info === undefined || info.subresource === "" ? "" : `/${info.subresource}`;
      return {
        method: exchange.method,
        path: `${exchange.url.pathname}${exchange.url.search}`,
        what: info === undefined ? "" : `${info.verb} ${info.resource}${subresource}`,
        user: exchange.user.name,
        userAgent: exchange.header("user-agent") ?? "",
        httpVersion: exchange.httpVersion,
        atMs,
        warnings: exchange.warnings,
        code: exchange.code,
      };
    });
    return what === undefined ? all : all.filter((each) => each.what === what);
  }

  clear(): void {
    this.#records = [];
  }
}
