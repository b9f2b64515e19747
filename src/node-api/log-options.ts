import { parseTime } from "../base/time.ts";

/** The requested part of a container's log (core/v1 PodLogOptions). */
export interface LogOptions {
  readonly follow: boolean;
  readonly previous: boolean;
  readonly timestamps: boolean;
  /** Wall clock ms; earlier lines are skipped. */
  readonly sinceMs: number | undefined;
  readonly tailLines: number | undefined;
  readonly limitBytes: number | undefined;
  /** Undefined: both. */
  readonly stream: "stdout" | "stderr" | undefined;
}

/** An invalid PodLogOptions query: the problem, and upstream's status. */
export class LogOptionsError extends Error {
  readonly status: 400 | 422;
  constructor(status: 400 | 422, message: string) {
    super(message);
    this.name = "LogOptionsError";
    this.status = status;
  }
}

/**
 * @param nowMs wall clock, for sinceSeconds
 * @throws LogOptionsError: 400 for unparsable options, 422 for contradictory ones
 */
export function logOptions(query: URLSearchParams, nowMs: number): LogOptions {
  const tail = tailLines(query);
  const sinceSeconds = integer(query, "sinceSeconds");
  const sinceTime = query.get("sinceTime") ?? "";
  const limitBytes = integer(query, "limitBytes");
  if (sinceSeconds !== undefined && sinceTime !== "") {
    throw new LogOptionsError(422, "at most one of sinceTime or sinceSeconds may be specified");
  }
  if (sinceSeconds !== undefined && sinceSeconds < 1) throw outOfRange("sinceSeconds", "greater than 0");
  if (limitBytes !== undefined && limitBytes < 1) throw outOfRange("limitBytes", "greater than 0");
  if (tail !== undefined && tail < 0) throw outOfRange("tailLines", "greater than or equal to 0");
  const since = sinceTime === "" ? undefined : parseTime(sinceTime);
  if (sinceTime !== "" && since === undefined) throw new LogOptionsError(400, "sinceTime must be an RFC 3339 time");
  const stream = streamOf(query.get("stream") ?? "All");
  if (stream !== undefined && tail !== undefined) {
    throw new LogOptionsError(422, "tailLines and a specific stream may not be specified together");
  }
  return {
    follow: flag(query, "follow"),
    previous: flag(query, "previous"),
    timestamps: flag(query, "timestamps"),
    sinceMs: sinceSeconds === undefined ? since : nowMs - sinceSeconds * 1000,
    tailLines: tail,
    limitBytes,
    stream,
  };
}

function outOfRange(name: string, must: string): LogOptionsError {
  return new LogOptionsError(422, `${name} must be ${must}`);
}

/** `tail` is its former name; `all` means no limit. */
function tailLines(query: URLSearchParams): number | undefined {
  const old = query.get("tail");
  if (old === null || query.has("tailLines")) return integer(query, "tailLines");
  return old === "all" ? undefined : integer(query, "tail");
}

function integer(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === "") return undefined;
  const value = /^-?\d{1,19}$/.test(text) ? BigInt(text) : undefined;
  if (value === undefined || BigInt.asIntN(64, value) !== value) {
    throw new LogOptionsError(400, `${name} must be an integer`);
  }
  // Amounts above the safe integers are equivalent to all.
  return Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, Number(value)));
}

/** As Kubernetes parses booleans in queries: present and not false. */
function flag(query: URLSearchParams, name: string): boolean {
  const text = query.get(name);
  return text !== null && !["false", "0"].includes(text.toLowerCase());
}

function streamOf(text: string): LogOptions["stream"] {
  switch (text) {
    case "All":
      return undefined;
    case "Stdout":
      return "stdout";
    case "Stderr":
      return "stderr";
    default:
      throw new LogOptionsError(422, "stream must be one of All, Stdout, Stderr");
  }
}
