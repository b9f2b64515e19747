import { parseAllDocuments, visit, type Document, type ErrorCode } from "yaml";
import { formatPath, ManifestError, quote, type Origin, type Position } from "./manifest-error.ts";
import { templateProblem } from "./placeholder.ts";
import { endOfQuoted, joinLines, maxTokens } from "./yaml-lines.ts";
import { fullBudget, Reader, type Budget, type SourceText } from "./yaml-reader.ts";

/**
 * One document of a file as plain values, and where each stands. Integers that a number does not hold exactly are
 * bigints, and nulls are where they were written: what both mean depends on the field (go-values.ts).
 */
export interface TextDocument {
  readonly value: unknown;
  readonly origin: Origin;
}

export interface DocumentOptions {
  /** Told of a repeated key, of which then the last counts; otherwise that is an error. */
  readonly onRepeatedKey?: (problem: ManifestError) => void;
  /** Told of what is wrong with later documents than the first, which alone counts; otherwise that is an error. */
  readonly onLaterError?: (problem: ManifestError) => void;
}

/** Where a text came from and what becomes of what is wrong with it. */
interface Reading {
  readonly file: string;
  /** The whole of it. */
  readonly text: string;
  readonly options: DocumentOptions;
  readonly budget: Budget;
  readonly place: (offset: number) => Position;
  readonly documents: TextDocument[];
  readonly errors: ManifestError[];
}

/**
 * Splits a text into its documents: YAML ones and JSON values, which may follow one another without a separator.
 * Scalars are read as Kubernetes does (yaml-scalars.ts), so that `yes`, `on` and `0644` mean true, true and 420. A
 * repeated key is an error. Empty documents are left out. A document with an error gives no value and does not hurt the
 * others.
 */
export function parseDocuments(
  text: string,
  file: string,
  options: DocumentOptions = {},
): { documents: TextDocument[]; errors: ManifestError[] } {
  const reading: Reading = {
    file,
    text,
    options,
    budget: fullBudget(),
    place: places(text),
    documents: [],
    errors: [],
  };
  const { documents, errors, budget } = reading;
  const joined = joinLines(text);
  if (joined === undefined) {
    errors.push(new ManifestError({ file }, `holds more than ${maxTokens} YAML tokens; split it into several files`));
    return { documents, errors };
  }
  for (const part of partsOf(joined)) {
    if (budget.values >= 0) readPart(part, reading);
  }
  return { documents, errors };
}

interface Part extends SourceText {
  /** Where it starts in the whole text. */
  readonly start: number;
}

/** A byte order mark where a document starts, as texts have them that were put together of several files. */
const innerMark = /(?<=^(?:---|\.\.\.)[ \t]*(?:#.*)?\r?\n)\ufeff|^\ufeff(?=---|[ \t]*\{)/gmu;

/** The JSON values that a text begins with, and what follows them cut where byte order marks stand. */
function partsOf(text: string): Part[] {
  const parts: Part[] = [];
  let start = 0;
  for (let value = jsonValueAt(text, 0); value !== undefined; value = jsonValueAt(text, start)) {
    parts.push(value);
    start = value.start + value.text.length;
  }
  if (text.includes("\ufeff", start)) {
    for (const { index } of text.matchAll(innerMark)) {
      if (index < start) continue;
      parts.push(yamlPart(text, start, index));
      start = index + 1;
    }
  }
  return [...parts, yamlPart(text, start, text.length)];
}

/** A break of lines that YAML has and the parser has not. */
const loneReturn = /\r(?!\n)/gu;

function yamlPart(text: string, start: number, end: number): Part {
  return { start, text: text.slice(start, end).replaceAll(loneReturn, "\n"), isJson: false };
}

/** The JSON map that starts there; undefined when there is none. */
function jsonValueAt(text: string, offset: number): Part | undefined {
  const opening = /[ \t\r\n\ufeff]*(?=\{)/uy;
  opening.lastIndex = offset;
  if (!opening.test(text)) return undefined;
  const start = opening.lastIndex;
  const mark = /["{}]/gu;
  mark.lastIndex = start;
  let depth = 0;
  for (let match = mark.exec(text); match !== null; match = mark.exec(text)) {
    if (match[0] === '"') mark.lastIndex = endOfQuoted(text, match.index, '"') || text.length;
    else depth += match[0] === "{" ? 1 : -1;
    if (depth > 0) continue;
    const value = text.slice(start, mark.lastIndex);
    return isJson(value) ? { start, text: value, isJson: true } : undefined;
  }
  return undefined;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function readPart(part: Part, reading: Reading): void {
  const { file, text, place, budget } = reading;
  let end = 0;
  for (const document of parse(part.text, reading)) {
    const start = end;
    end = document.range[2];
    // One slip makes a parser report several things: the first is the one to mend.
    const problem = problemAsWritten(document, part, start, reading) ?? oddBreak(document, part, start);
    if (problem !== undefined) {
      const position = place(part.start + problem.offset);
      const detail = templateProblem(text, position.line) ?? problem.detail;
      fail(new ManifestError({ file, position }, detail), reading);
      continue;
    }
    readDocument(document, part, reading);
    if (budget.values < 0) return;
  }
}

function readDocument(document: Document.Parsed, part: Part, reading: Reading): void {
  const { file, text, options, place } = reading;
  const reader = new Reader(reading.budget, part);
  const value = reader.read(document.contents, []);
  let failed = false;
  for (const { offset, path, detail, repeatedKey } of reader.problems) {
    const field = path.length === 0 ? undefined : formatPath(path);
    const position = place(part.start + offset);
    const error = new ManifestError({ file, position, field }, templateProblem(text, position.line) ?? detail);
    if (repeatedKey && options.onRepeatedKey !== undefined) {
      options.onRepeatedKey(error);
    } else {
      fail(error, reading);
      failed = true;
    }
  }
  if (failed || value === null) return;
  const start = document.contents?.range[0] ?? 0;
  const locate: Origin["locate"] = (path) => place(part.start + (reader.offsetOf(value, path) ?? start));
  reading.documents.push({ value, origin: { file, locate } });
}

function fail(error: ManifestError, { documents, errors, options }: Reading): void {
  if (documents.length > 0 && options.onLaterError !== undefined) options.onLaterError(error);
  else errors.push(error);
}

function parse(text: string, { file, errors }: Reading): Document.Parsed[] {
  try {
    const documents = parseAllDocuments(text, {
      prettyErrors: false,
      // Reader finds repeated keys, in linear time, and what scalars and their tags mean.
      uniqueKeys: false,
      schema: "failsafe",
      resolveKnownTags: false,
    });
    return Array.isArray(documents) ? documents : [];
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    errors.push(new ManifestError({ file }, "nests too deeply"));
    return [];
  }
}

interface Slip {
  readonly offset: number;
  readonly detail: string;
}

/** Escapes and tags are left to Reader: the parser has those of YAML 1.2. */
function problemOf(document: Document.Parsed, text: string): Slip | undefined {
  const { explicit, version } = document.directives.yaml;
  if (explicit === true && version !== "1.1") {
    const offset = Math.max(0, text.lastIndexOf("%YAML", document.range[0]));
    const line = /^%YAML[ \t]+[\d.]{1,9}/u.exec(text.slice(offset, offset + 40))?.[0] ?? "%YAML";
    return { offset, detail: `found incompatible YAML document: ${quote(line)}; Kubernetes reads 1.1: leave it out` };
  }
  const problem =
    document.errors.find(({ code }) => code !== "BAD_DQ_ESCAPE") ??
    document.warnings.find(({ code }) => code !== "TAG_RESOLVE_FAILED");
  return problem && { offset: problem.pos[0], detail: describe(problem.code) };
}

/** A problem of what was joined may be told far from the slip: the text as it was written has it where a line goes wrong. */
function problemAsWritten(document: Document.Parsed, part: Part, start: number, reading: Reading): Slip | undefined {
  const problem = problemOf(document, part.text);
  const [from, to] = [part.start + start, part.start + document.range[2]];
  const written = reading.text.slice(from, to);
  if (problem === undefined || written === part.text.slice(start, document.range[2])) return problem;
  const [first] = parse(written, reading);
  const earlier = first && problemOf(first, written);
  return earlier === undefined ? problem : { ...earlier, offset: start + earlier.offset };
}

/** Where a break of lines stands that the parser does not know and only a quoted text may hold. */
function oddBreak(document: Document.Parsed, part: Part, start: number): Slip | undefined {
  const found = part.isJson ? [] : [...part.text.slice(start, document.range[2]).matchAll(/[\u0085\u2028\u2029]/gu)];
  if (found.length === 0) return undefined;
  const quoted: [from: number, to: number][] = [];
  visit(document, {
    Scalar(_key, { type, range }) {
      if (range && (type === "QUOTE_DOUBLE" || type === "QUOTE_SINGLE")) quoted.push([range[0], range[1]]);
    },
  });
  const offset = found
    .map(({ index }) => start + index)
    .find((each) => !quoted.some(([from, to]) => from < each && each < to));
  if (offset === undefined) return undefined;
  const detail = "broken YAML: U+0085, U+2028 and U+2029 break a line; in double quotes they are \\N, \\L and \\P";
  return { offset, detail };
}

/** Looks the place of an offset up. Most texts are never asked: their lines are counted at the first question. */
function places(text: string): (offset: number) => Position {
  let starts: number[] | undefined;
  return (offset) => {
    starts ??= [0, ...Array.from(text.matchAll(/\n/gu), (match) => match.index + 1)];
    let low = 0;
    let high = starts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle;
    }
    return { line: low + 1, column: offset - (starts[low] ?? 0) + 1 };
  };
}

const unclear = "is not valid YAML here";
const descriptions: Partial<Record<ErrorCode, string>> = {
  BAD_ALIAS: "an alias is not well formed; a text that starts with * needs quotes",
  BAD_DIRECTIVE: "a line that starts with % is a YAML directive, and this is none that exists",
  BAD_INDENT: "broken YAML: the indentation does not fit the lines above it, or a bracket there is not closed",
  BAD_SCALAR_START: `a text that starts with ${quote("@")}, ${quote("`")} or another reserved character needs quotes`,
  BLOCK_AS_IMPLICIT_KEY: `broken YAML: a second ": " in one line; put the text in quotes, or mind the indentation`,
  BLOCK_IN_FLOW: "broken YAML: a block inside of [ ] or { }",
  MISSING_CHAR: "broken YAML: a closing quote, a bracket or a separator is missing",
  MULTILINE_IMPLICIT_KEY: `broken YAML: a key must end with ": " on its own line`,
  MULTIPLE_ANCHORS: "broken YAML: two anchors on one value",
  MULTIPLE_TAGS: "broken YAML: two tags on one value",
  KEY_OVER_1024_CHARS: "broken YAML: a key is longer than 1024 characters",
  RESOURCE_EXHAUSTION: "nests too deeply",
  TAB_AS_INDENT: "broken YAML: tabs can't indent; use spaces",
  TAG_RESOLVE_FAILED: "unknown tag; a text that starts with ! needs quotes",
  UNEXPECTED_TOKEN: `broken YAML: this can't stand here; look for a missing ": ", dash, quote or bracket before it`,
};

/** In our own words: the parser's may hold text of the manifest, and so a secret. */
function describe(code: ErrorCode): string {
  return descriptions[code] ?? `broken YAML: ${unclear}`;
}
