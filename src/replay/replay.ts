import { isDeepStrictEqual } from "node:util";
import * as z from "zod";
import { errorMessage } from "../base/errors.ts";
import { computePodActions } from "../runtime/actions/pod-actions.ts";
import { isSelectedBy } from "../server/pod-selector.ts";
import { restoredInputs } from "./decode.ts";
import { recordedActions } from "./encode.ts";
import { type Decided, DecisionLine, HeaderLine, recordingFormat, recordingVersion } from "./format.ts";

/** A recording that can't be read: what is wrong, in which line (from 1). */
export class RecordingError extends Error {
  constructor(line: number, message: string) {
    super(`line ${line}: ${message}`);
    this.name = "RecordingError";
  }
}

/** A decision that would be another today. */
export interface Difference {
  /** Of the recording, from 1. */
  readonly line: number;
  readonly recorded: DecisionLine;
  /** The error's message when nothing can be decided any more. */
  readonly now: Decided | { readonly error: string };
}

export interface Replay {
  readonly decisions: number;
  readonly pods: number;
  /** Lives of podwright that wrote to it. */
  readonly lives: number;
  /** Lines that were cut off as podwright was killed or the disk was full. */
  readonly cutOff: readonly number[];
  readonly different: number;
  readonly first: Difference | undefined;
}

/**
 * Decides everything in a recording once more, and compares. Pure.
 * @param selector only pods of this name, namespace/name or UID
 * @throws RecordingError for a text that is no recording, a newer one or a broken one
 */
export function replay(text: string, selector?: string): Replay {
  const pods = new Set<string>();
  let decisions = 0;
  let different = 0;
  let first: Difference | undefined;
  const { lines, lives, cutOff } = readLines(text);
  for (const { line, value } of lines) {
    if (selector !== undefined && !isSelectedBy(value.pod, selector)) continue;
    decisions++;
    pods.add(value.pod.uid);
    const now = decidedNow(value);
    if (isDeepStrictEqual(now, value.decided)) continue;
    different++;
    first ??= { line, recorded: value, now };
  }
  return { decisions, pods: pods.size, lives, cutOff, different, first };
}

function decidedNow(recorded: DecisionLine): Difference["now"] {
  try {
    const { pod, status, context } = restoredInputs(recorded);
    // As it would come back from a file, where what is undefined is not there.
    const text = JSON.stringify(recordedActions(computePodActions(pod, status, context)));
    return JSON.parse(text) as Decided;
  } catch (error) {
    return { error: errorMessage(error) };
  }
}

interface Lines {
  readonly lines: { readonly line: number; readonly value: DecisionLine }[];
  readonly lives: number;
  readonly cutOff: number[];
}

function readLines(text: string): Lines {
  const found: Lines["lines"] = [];
  const cutOff: number[] = [];
  // Lines that are no JSON. They were cut off if a header or nothing at all comes next.
  let torn: number[] = [];
  let lives = 0;
  for (const [index, each] of text.split("\n").entries()) {
    if (each === "") continue;
    const line = index + 1;
    const value = json(each);
    if (isHeader(value)) {
      checkHeader(line, value);
      lives++;
      cutOff.push(...torn);
      torn = [];
      continue;
    }
    if (lives === 0) throw new RecordingError(line, noRecording);
    if (value === undefined) torn.push(line);
    else if (torn[0] !== undefined) throw new RecordingError(torn[0], noJson);
    else found.push({ line, value: parseDecision(line, value) });
  }
  if (lives === 0) throw new RecordingError(1, "the file is empty");
  if (torn[0] !== undefined && text.endsWith("\n")) throw new RecordingError(torn[0], noJson);
  return { lines: found, lives, cutOff: [...cutOff, ...torn] };
}

const noJson = "not JSON";
const noRecording = "not a podwright recording: no header";

function json(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** True for the value of a line that says that it begins a recording, of whatever version. */
export function isHeader(value: unknown): boolean {
  return typeof value === "object" && value !== null && "format" in value && value.format === recordingFormat;
}

function checkHeader(line: number, value: unknown): void {
  const { success, data, error } = HeaderLine.safeParse(value);
  if (!success) throw new RecordingError(line, `invalid header: ${problemOf(error)}`);
  if (data.version === recordingVersion) return;
  const by = data.podwright === undefined ? "" : ` by podwright ${data.podwright}`;
  const which = `recorded${by} in version ${data.version} of the format`;
  throw new RecordingError(line, `${which}; this podwright reads version ${recordingVersion}`);
}

function parseDecision(line: number, value: unknown): DecisionLine {
  try {
    return DecisionLine.parse(value);
  } catch (error) {
    // A chain of causes without end is no ZodError.
    throw new RecordingError(line, error instanceof z.ZodError ? problemOf(error) : errorMessage(error));
  }
}

function problemOf(error: z.ZodError): string {
  const [issue] = error.issues;
  if (issue === undefined) return error.message;
  return `${issue.path.length === 0 ? "the line" : issue.path.join(".")}: ${issue.message}`;
}
