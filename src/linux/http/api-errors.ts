import { ExitCode, PodwrightError, errorMessage } from "../../base/errors.ts";
import { fileProblem } from "../../base/file-problem.ts";
import type { FieldProblem } from "../../ports/field-problem.ts";
import type { ApiErrorBody, ApiResponse } from "../../ports/api-server.ts";

/** The response to a failed request: {@link ApiErrorBody} with the status that fits the exit code. */
export function errorResponse(thrown: unknown): ApiResponse {
  // The engine runs as root, and its disk may be full.
  const error = thrown instanceof PodwrightError ? thrown : (fileProblem(thrown, true) ?? thrown);
  const message = errorMessage(error);
  const body: ApiErrorBody =
    error instanceof PodwrightError
      ? {
          error: message,
          exitCode: error.exitCode,
          ...(error.remedy !== undefined && { remedy: error.remedy }),
          ...(error.problems.length > 0 && { problems: error.problems }),
        }
      : { error: message, exitCode: ExitCode.failed };
  return { status: statusOf(error), contentType: "application/json", body: `${JSON.stringify(body)}\n` };
}

/** The same for other clients, as Go's http.Error: the message as plain text. */
export function plainError(error: unknown): ApiResponse {
  const headers = { "X-Content-Type-Options": "nosniff" };
  return {
    status: statusOf(error),
    contentType: "text/plain; charset=utf-8",
    headers,
    body: `${errorMessage(error)}\n`,
  };
}

/** A request body exceeds the server's limit. */
export class BodyTooLong extends PodwrightError {
  constructor(maxBytes: number) {
    super(ExitCode.badInput, `the request's body is longer than ${maxBytes} bytes`);
  }
}

function statusOf(error: unknown): number {
  if (!(error instanceof PodwrightError)) return 500;
  if (error instanceof BodyTooLong) return 413;
  switch (error.exitCode) {
    case ExitCode.badInput:
      return 400;
    case ExitCode.failed:
      return 422;
    case ExitCode.environment:
      return 503;
    case ExitCode.done:
      return 500;
  }
}

/** The reverse: the error behind a response with status 400 or above. */
export function answeredError(status: number, text: string): PodwrightError {
  const body = parseErrorBody(text);
  if (body === undefined) return new PodwrightError(ExitCode.failed, `podwright returned ${status}: ${text.trim()}`);
  const exitCode = Object.values(ExitCode).find((code) => code === body.exitCode && code !== ExitCode.done);
  return new PodwrightError(exitCode ?? ExitCode.failed, body.error, body);
}

function isFieldProblem(value: unknown): value is FieldProblem {
  if (typeof value !== "object" || value === null) return false;
  const { object, path, detail } = value as Record<string, unknown>;
  const isPath = Array.isArray(path) && path.every((part) => typeof part === "string" || typeof part === "number");
  return typeof object === "string" && isPath && typeof detail === "string";
}

function parseErrorBody(text: string): ApiErrorBody | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null || !("error" in value) || typeof value.error !== "string") {
    return undefined;
  }
  const { error } = value;
  const remedy = "remedy" in value && typeof value.remedy === "string" ? { remedy: value.remedy } : {};
  const exitCode = "exitCode" in value && typeof value.exitCode === "number" ? { exitCode: value.exitCode } : {};
  const problems = "problems" in value && Array.isArray(value.problems) ? value.problems.filter(isFieldProblem) : [];
  return { error, ...remedy, ...exitCode, problems };
}
