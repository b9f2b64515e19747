import * as z from "zod";
import { errorMessage } from "../base/errors.ts";

/** metav1.Status, limited to the fields that describe the error. */
const Status = z.looseObject({
  kind: z.literal("Status"),
  message: z.string().nullish(),
  reason: z.string().nullish(),
  // A wrong one still reports why.
  code: z.number().nullish().catch(undefined),
  details: z.looseObject({ retryAfterSeconds: z.number().nullish() }).nullish(),
});

/** Reasons of metav1.Status that anything here depends on. */
export type ApiErrorReason = "NotFound" | "AlreadyExists" | "Conflict" | "Forbidden" | "Expired" | "Gone";

/** An answer of the API server that is no success. */
export class ApiError extends Error {
  /** HTTP status. */
  readonly code: number;
  /** metav1.Status.reason, or empty. */
  readonly reason: string;
  /** The pause that the server requests, milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** What the server said, without the request. */
  readonly answer: string;

  constructor(code: number, reason: string, message: string, retryAfterMs?: number, answer = message) {
    super(message);
    this.name = "ApiError";
    this.answer = answer;
    this.code = code;
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Whether an error is such an answer of the API server, which gave its reason itself. */
export function isApiError(error: unknown, ...reasons: readonly ApiErrorReason[]): error is ApiError {
  return error instanceof ApiError && reasons.some((reason) => reason === error.reason);
}

/** Whether a patch that says by its UID which object is meant met another of its name: to the server an invalid change. */
export function isOtherUid(error: unknown): boolean {
  return error instanceof ApiError && error.code === 422 && /\bmetadata\.uid: /u.test(error.message);
}

/** A longer requested pause is cut to this. */
const longestPauseMs = 60_000;

/** The pause that the server requested with this error, milliseconds; 0: none. */
export function askedPauseMs(error: unknown): number {
  if (!(error instanceof ApiError) || error.retryAfterMs === undefined) return 0;
  const isBusy = error.code === 429 || error.code >= 500;
  return isBusy ? Math.min(error.retryAfterMs, longestPauseMs) : 0;
}

/** Whether the requested resource version is too old (410): only a list helps. */
export function isExpired(error: unknown): boolean {
  return error instanceof ApiError && (error.code === 410 || isApiError(error, "Expired", "Gone"));
}

/** An answer of the API server that is not what it should be: a defect, there or here. */
export class ApiDecodeError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ApiDecodeError";
  }
}

/**
 * The error that an answer stands for. Pure.
 * @param head of the answer; of an ERROR event of a watch, its code
 */
export function apiErrorOf(what: string, head: AnswerHead, body: unknown): ApiError {
  const { status: code, headers } = head;
  const status = Status.safeParse(body).data;
  const seconds = retryAfterSeconds(headers) ?? status?.details?.retryAfterSeconds;
  const retryAfterMs = typeof seconds === "number" && seconds >= 0 ? seconds * 1000 : undefined;
  const message = status?.message || `the API server answered with ${status === undefined ? headText(head) : code}`;
  // The code alone gives no reason: proxies and load balancers, which respond without a Status, know no objects.
  return new ApiError(status?.code || code, status?.reason ?? "", `${what}: ${message}`, retryAfterMs, message);
}

/** The header's seconds, or those to its date by the server's own clock (RFC 9110, 10.2.3). */
function retryAfterSeconds({ "retry-after": text = "", date = "" }: AnswerHead["headers"]): number | undefined {
  if (/^\d+$/u.test(text)) return Number(text);
  const seconds = (Date.parse(text) - Date.parse(date)) / 1000;
  return Number.isNaN(seconds) ? undefined : seconds;
}

/** HTTP status and headers, by their names in small letters. */
export interface AnswerHead {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
}

/**
 * Parses JSON of the API server.
 * @throws ApiDecodeError that shows nothing of the text, because it may contain a secret
 * @param head undefined: the text is a part of a response
 */
export function parseAnswer(what: string, text: string, head?: AnswerHead): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // The parser's message quotes the text.
    const kind = error instanceof SyntaxError ? `${text.length} characters that are not JSON` : errorMessage(error);
    throw new ApiDecodeError(`${what}: the API server sent ${kind}${head === undefined ? "" : ` (${headText(head)})`}`);
  }
}

/** What an answer is that is not the API server's own: `302, text/html, to https://login.example/start`. Pure. */
export function headText({ status, headers }: AnswerHead): string {
  const type = headers["content-type"]?.split(";")[0]?.trim();
  const parts = [String(status), type || "without a content type"];
  const location = headers["location"];
  if (status >= 300 && status < 400 && location !== undefined) parts.push(`to ${placeOf(location)}`);
  return parts.join(", ");
}

/** Without potential secrets: user and query. */
function placeOf(location: string): string {
  const url = URL.parse(location, "relative://");
  if (url === null) return "nowhere";
  return `${url.protocol === "relative:" ? "" : `${url.protocol}//${url.host}`}${url.pathname}`;
}
