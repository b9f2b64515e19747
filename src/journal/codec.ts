import { podUid } from "../base/ids.ts";
import type { Cause, JournalEntry, PodRef, Repeated } from "./entry.ts";
import { causeCodeOf, entryNameOf } from "./vocabulary.ts";
import type { JournalKind } from "./vocabulary/term.ts";

/** An entry and its line of JSON on disk (with newline). */
export interface EncodedEntry {
  readonly entry: JournalEntry;
  readonly line: string;
}

const maxMessageCharacters = 4096;
const maxLineCharacters = 32 * 1024;
const maxCauses = 32;
/** Far below 2^53, so that a corrupt number never stops the count; far above what a node records in a century. */
const maxSeq = 1e15;
const kinds: ReadonlySet<string> = new Set<JournalKind>([
  "input",
  "observation",
  "decision",
  "action",
  "outcome",
  "note",
]);

/**
 * Encodes the entry as one JSON line. If it cannot be serialized (a cycle, a bigint) or exceeds 32 KiB, data are
 * dropped and texts truncated, so that a defect in a caller never loses the record.
 */
export function encodeEntry(entry: JournalEntry): EncodedEntry {
  try {
    const line = `${JSON.stringify(entry)}\n`;
    if (line.length <= maxLineCharacters) return { entry, line };
  } catch {
    // Falls through to the reduced entry.
  }
  const reduced = reduce(entry);
  return { entry: reduced, line: `${JSON.stringify(reduced)}\n` };
}

function reduce(entry: JournalEntry): JournalEntry {
  const { pod, container, of, result, durationMs, until, repeated } = entry;
  return {
    seq: entry.seq,
    time: entry.time,
    kind: entry.kind,
    what: entryNameOf(cut(entry.what)),
    message: cut(entry.message),
    ...(pod !== undefined && {
      pod: { namespace: cut(pod.namespace), name: cut(pod.name), uid: podUid(cut(pod.uid)) },
    }),
    ...(container !== undefined && { container: cut(container) }),
    ...(entry.cause !== undefined && { cause: reduceCause(entry.cause) }),
    ...(of !== undefined && { of }),
    ...(result !== undefined && { result }),
    ...(durationMs !== undefined && { durationMs }),
    ...(until !== undefined && { until }),
    ...(repeated !== undefined && { repeated }),
    data: { reduced: "the entry was too large or not JSON" },
  };
}

/** Keeps only the nearest reason: removes cycles and long chains. */
function reduceCause(cause: Cause): Cause {
  const { entry } = cause;
  return { code: causeCodeOf(cut(cause.code)), message: cut(cause.message), ...(entry !== undefined && { entry }) };
}

/** Accepts anything, because the entry may violate its type. */
function cut(text: unknown): string {
  if (typeof text !== "string") return "?";
  return text.length <= maxMessageCharacters ? text : `${text.slice(0, maxMessageCharacters)}…`;
}

/**
 * Decodes one line; undefined for a torn or foreign one. Unknown names and codes of other versions become
 * `UnknownEntry` and `UnknownCause`; the messages are kept.
 */
export function decodeLine(line: string): JournalEntry | undefined {
  try {
    const value: unknown = JSON.parse(line);
    if (!isWritten(value)) return undefined;
    const { cause, ...entry } = value;
    return { ...entry, what: entryNameOf(entry.what), ...(cause !== undefined && { cause: known(cause) }) };
  } catch {
    return undefined;
  }
}

type Written<T> = Omit<T, "cause" | "because" | "what" | "code">;

/** An entry as found on disk, with arbitrary names. */
interface WrittenEntry extends Written<JournalEntry> {
  readonly what: string;
  readonly cause?: WrittenCause;
}

interface WrittenCause extends Written<Cause> {
  readonly code: string;
  readonly because?: WrittenCause;
}

function known({ code, because, ...cause }: WrittenCause): Cause {
  return { ...cause, code: causeCodeOf(code), ...(because !== undefined && { because: known(because) }) };
}

function isWritten(value: unknown): value is WrittenEntry {
  if (!isObject(value)) return false;
  const { seq, time, kind, what, message, result, data } = value;
  return (
    typeof seq === "number" &&
    Number.isInteger(seq) &&
    seq > 0 &&
    seq < maxSeq &&
    typeof time === "number" &&
    typeof kind === "string" &&
    kinds.has(kind) &&
    typeof what === "string" &&
    typeof message === "string" &&
    (result === undefined || result === "done" || result === "failed" || result === "unknown") &&
    (data === undefined || isObject(data)) &&
    isOptional("string", value.container) &&
    [value.of, value.durationMs, value.until].every((number) => isOptional("number", number)) &&
    (value.pod === undefined || isPodRef(value.pod)) &&
    (value.cause === undefined || isCause(value.cause, maxCauses)) &&
    (value.repeated === undefined || isRepeated(value.repeated))
  );
}

function isPodRef(value: unknown): value is PodRef {
  return (
    isObject(value) &&
    typeof value.namespace === "string" &&
    typeof value.name === "string" &&
    typeof value.uid === "string"
  );
}

function isCause(value: unknown, depth: number): value is WrittenCause {
  return (
    depth > 0 &&
    isObject(value) &&
    typeof value.code === "string" &&
    typeof value.message === "string" &&
    isOptional("number", value.entry) &&
    (value.because === undefined || isCause(value.because, depth - 1))
  );
}

function isRepeated(value: unknown): value is Repeated {
  return isObject(value) && typeof value.count === "number" && typeof value.lastTime === "number";
}

function isOptional(type: "string" | "number", value: unknown): boolean {
  return value === undefined || typeof value === type;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
