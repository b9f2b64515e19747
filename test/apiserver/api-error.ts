import type { Fields } from "./objects.ts";

/** An error's object. */
export interface ErrorSubject {
  readonly group: string;
  /** The plural. */
  readonly resource: string;
  readonly name?: string;
}

interface ErrorOptions {
  readonly subject?: ErrorSubject;
  readonly causes?: readonly Fields[];
  readonly retryAfterSeconds?: number;
}

/** An error response, with the fields of its `Status` object. */
export class ApiError extends Error {
  readonly code: number;
  readonly reason: string;
  readonly options: ErrorOptions;

  constructor(code: number, reason: string, message: string, options: ErrorOptions = {}) {
    super(message);
    this.name = "ApiError";
    this.code = code;
    this.reason = reason;
    this.options = options;
  }

  /** The response's `Status` object (meta/v1). */
  toStatus(): Fields {
    const { subject, causes, retryAfterSeconds } = this.options;
    const details = {
      ...(subject?.name === undefined || subject.name === "" ? {} : { name: subject.name }),
      ...(subject === undefined || subject.group === "" ? {} : { group: subject.group }),
      ...(subject === undefined || subject.resource === "" ? {} : { kind: subject.resource }),
      ...(causes === undefined ? {} : { causes }),
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    };
    return {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message: this.message,
      ...(this.reason === "" ? {} : { reason: this.reason }),
      ...(Object.keys(details).length === 0 ? {} : { details }),
      code: this.code,
    };
  }
}

function named(subject: ErrorSubject): string {
  const resource = subject.group === "" ? subject.resource : `${subject.resource}.${subject.group}`;
  return `${resource} ${JSON.stringify(subject.name ?? "")}`;
}

export function badRequest(message: string): ApiError {
  return new ApiError(400, "BadRequest", message);
}

export function notFound(subject: ErrorSubject): ApiError {
  return new ApiError(404, "NotFound", `${named(subject)} not found`, { subject });
}

export function alreadyExists(subject: ErrorSubject): ApiError {
  return new ApiError(409, "AlreadyExists", `${named(subject)} already exists`, { subject });
}

export function conflict(subject: ErrorSubject, why: string): ApiError {
  return new ApiError(409, "Conflict", `Operation cannot be fulfilled on ${named(subject)}: ${why}`, { subject });
}

export function forbidden(subject: ErrorSubject, why: string): ApiError {
  return new ApiError(403, "Forbidden", `${named(subject)} is forbidden: ${why}`, { subject });
}

/** @param causes `[field, message]` each, as `["spec.nodeName", "field is immutable"]` */
export function invalid(subject: ErrorSubject, kind: string, causes: readonly (readonly [string, string])[]): ApiError {
  const said = causes.map(([field, message]) => `${field}: ${message}`);
  const list = said.length === 1 ? said.join("") : `[${said.join(", ")}]`;
  const full = subject.group === "" ? kind : `${kind}.${subject.group}`;
  return new ApiError(422, "Invalid", `${full} ${JSON.stringify(subject.name ?? "")} is invalid: ${list}`, {
    subject: { ...subject, resource: kind },
    causes: causes.map(([field, message]) => ({ reason: causeReason(message), message, field })),
  });
}

/** Reasons by the beginning of a problem's message. */
const causeReasons: readonly (readonly [words: string, reason: string])[] = [
  ["Required value", "FieldValueRequired"],
  ["Forbidden", "FieldValueForbidden"],
  ["Duplicate value", "FieldValueDuplicate"],
  ["Not found", "FieldValueNotFound"],
  ["Unsupported value", "FieldValueNotSupported"],
];

function causeReason(message: string): string {
  return causeReasons.find(([words]) => message.startsWith(words))?.[1] ?? "FieldValueInvalid";
}

/** 410: the revision is older than the kept history. */
export function expired(message: string): ApiError {
  return new ApiError(410, "Expired", message);
}

export function methodNotAllowed(): ApiError {
  return new ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource");
}
