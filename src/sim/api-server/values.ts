/** JSON objects as stored and sent. They are immutable: a change creates a new object. */
export type Fields = Readonly<Record<string, unknown>>;

export interface Metadata extends Fields {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly creationTimestamp: string;
  readonly generation?: number;
  readonly labels?: Fields;
  readonly annotations?: Fields;
  readonly deletionTimestamp?: string;
  readonly deletionGracePeriodSeconds?: number;
}

/** An object of the API. */
export interface Value extends Fields {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Metadata;
}

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The object at a field; empty if missing. */
export function fieldsAt(value: Fields, name: string): Fields {
  const member = value[name];
  return isFields(member) ? member : {};
}

/** The objects of a list; empty if missing. */
export function listAt(value: Fields, name: string): readonly Fields[] {
  const member = value[name];
  return Array.isArray(member) ? member.filter(isFields) : [];
}

/** An error response of the API server (metav1.Status). */
export class Refusal extends Error {
  readonly code: number;
  readonly reason: string;
  readonly retryAfterSeconds: number | undefined;

  constructor(code: number, reason: string, message: string, retryAfterSeconds?: number) {
    super(message);
    this.code = code;
    this.reason = reason;
    this.retryAfterSeconds = retryAfterSeconds;
  }

  status(): Fields {
    const { code, reason, message, retryAfterSeconds } = this;
    const details = retryAfterSeconds === undefined ? {} : { details: { retryAfterSeconds } };
    return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, code, ...details };
  }
}

export function notFound(resource: string, name: string): Refusal {
  return new Refusal(404, "NotFound", `${resource} "${name}" not found`);
}

export function conflict(resource: string, name: string, why: string): Refusal {
  return new Refusal(409, "Conflict", `Operation cannot be fulfilled on ${resource} "${name}": ${why}`);
}

export function tooOld(version: number): Refusal {
  return new Refusal(410, "Expired", `too old resource version: ${version}`);
}
