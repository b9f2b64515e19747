import { parseJson } from "./json-nodes.ts";
import { formatPath, ManifestError, type Origin } from "./manifest-error.ts";
import { Lines } from "./text-lines.ts";
import { YamlError, nextMatch } from "./characters.ts";
import type { YamlNode } from "./nodes.ts";
import { parseTokens } from "./parser.ts";
import { fullBudget, maxProblems, Reader, type Budget, type Problem } from "./reader.ts";
import { scanDocument } from "./scanner.ts";
import { endOfQuoted } from "./texts.ts";
import type { Token } from "./tokens.ts";

/**
 * One document of a file as plain values, with their positions. Integers that a number cannot hold exactly are bigints,
 * JSON numbers in another notation are WrittenNumbers, escaped JSON strings that may be quantities EscapedTexts, and
 * nulls are kept: their meaning depends on the field (go-values.ts).
 */
export interface TextDocument {
  readonly value: unknown;
  readonly origin: Origin;
}

export interface DocumentOptions {
  /** Receives duplicate keys, of which the last then counts; otherwise they are errors. */
  readonly onRepeatedKey?: (problem: ManifestError) => void;
  /** Receives problems of later documents, for callers that use only the first; otherwise they are errors. */
  readonly onLaterError?: (problem: ManifestError) => void;
}

/** The source of a text, and where its problems go. */
interface Reading {
  readonly file: string;
  readonly options: DocumentOptions;
  readonly budget: Budget & { tokens: number; problems: number };
  readonly lines: Lines;
  readonly documents: TextDocument[];
  readonly errors: ManifestError[];
}

/**
 * Splits a text into its documents: YAML and JSON values, which may follow one another without a separator. Scalars are
 * read as Kubernetes does (scalars.ts): `yes`, `on` and `0644` mean true, true and 420. A duplicate key is an error.
 * Empty documents are skipped. A document with an error has no value and does not affect the others.
 */
export function parseDocuments(
  text: string,
  file: string,
  options: DocumentOptions = {},
): { documents: TextDocument[]; errors: ManifestError[] } {
  const reading: Reading = {
    file,
    options,
    budget: { ...fullBudget(), tokens: maxTokens, problems: maxProblems },
    lines: new Lines(text),
    documents: [],
    errors: [],
  };
  const { documents, errors, budget } = reading;
  for (const part of partsOf(text)) {
    if (budget.values >= 0) readPart(part, reading);
  }
  return { documents, errors };
}

interface Part {
  readonly text: string;
  readonly isJson: boolean;
  /** Its offset in the whole text. */
  readonly start: number;
}

/** A byte order mark at the start of a document, from concatenated files. */
const innerMark = /(?<=^(?:---|\.\.\.)[ \t]*(?:#.*)?\r?\n)\ufeff|^\ufeff(?=---|[ \t]*\{)/gmu;

/** The JSON values at the beginning of a text, and the rest split at byte order marks. */
function partsOf(text: string): Part[] {
  const parts: Part[] = [];
  let start = 0;
  for (let value = jsonValueAt(text, 0); value !== undefined; value = jsonValueAt(text, start)) {
    parts.push(value);
    start = behindMark(text, behindEmptyLines(text, value.start + value.text.length));
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

function yamlPart(text: string, from: number, end: number): Part {
  const start = text[from] === "\ufeff" ? from + 1 : from;
  return { start, text: text.slice(start, end), isJson: false };
}

/** The JSON map at an offset; undefined when there is none. */
function jsonValueAt(text: string, offset: number): Part | undefined {
  const opening = /[ \t\r\n\ufeff]*(?=\{)/uy;
  opening.lastIndex = offset;
  if (!opening.test(text)) return undefined;
  const start = opening.lastIndex;
  const mark = /["{}]/gu;
  mark.lastIndex = start;
  let depth = 0;
  for (let match = mark.exec(text); match !== null; match = mark.exec(text)) {
    if (match[0] === '"') mark.lastIndex = endOfQuoted(text, match.index) || text.length;
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

/** The YAML parser needs a microsecond per token, so their number is bounded as well as the file's size. */
const maxTokens = 500_000;

function readPart(part: Part, reading: Reading): void {
  if (part.isJson) {
    readJson(part, reading);
    return;
  }
  const { text } = part;
  const control = text.search(controlCharacter);
  if (control >= 0) {
    const code = text.charCodeAt(control).toString(16).toUpperCase().padStart(4, "0");
    failAt(part.start + control, `contains the character U+${code}: is it a binary file?`, reading);
    return;
  }
  for (let start = 0; start < text.length && reading.budget.values >= 0;) {
    const tokens = scanDocument(text, start, reading.budget.tokens);
    if (outOfTokens(tokens.length, reading)) return;
    start = readTokens(tokens, start, part, reading);
  }
}

/** Characters that YAML 1.1 forbids (§5.1). */
const controlCharacter = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u0084\u0086-\u009f\ud800-\udfff\ufffe\uffff]/u;

function outOfTokens(used: number, { file, errors, budget }: Reading): boolean {
  budget.tokens -= used;
  if (budget.tokens >= 0) return false;
  budget.values = -1;
  errors.push(new ManifestError({ file }, `holds more than ${maxTokens} YAML tokens; split it into several files`));
  return true;
}

/** Returns the offset of the next document. */
function readTokens(tokens: readonly Token[], start: number, part: Part, reading: Reading): number {
  try {
    const node = parseTokens(tokens);
    if (node !== undefined) readDocument(node, part.start, reading);
    return behindMark(part.text, tokens.at(-1)?.start ?? part.text.length);
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    failAt(part.start + error.offset, error.message, reading);
    return behindMark(part.text, nextMatch(documentMark, part.text, markOf(tokens, start, part.text) + 1));
  }
}

const documentMark = /(?<=[\r\n\u0085\u2028\u2029])(?:---|\.\.\.)(?=[ \t\r\n\u0085\u2028\u2029]|$)/gu;

/** The offset of the document's `---` after its directives, or else of its start. */
function markOf(tokens: readonly Token[], start: number, text: string): number {
  const [first] = tokens;
  if (first !== undefined && text[first.start] === "%") return nextMatch(documentMark, text, first.start);
  return first?.kind === "---" ? first.start : start;
}

function behindEmptyLines(text: string, at: number): number {
  const lines = /(?:[ \t]*(?:#[^\r\n\u0085\u2028\u2029]*)?[\r\n\u0085\u2028\u2029])*/uy;
  lines.lastIndex = at;
  return lines.test(text) ? lines.lastIndex : at;
}

/** Skips `...` lines. */
function behindMark(text: string, at: number): number {
  const marks = /(?:\.\.\.[ \t]*(?:#[^\r\n\u0085\u2028\u2029]*)?(?:\r\n|[\r\n\u0085\u2028\u2029]|$))*/uy;
  marks.lastIndex = at;
  return marks.test(text) ? marks.lastIndex : at;
}

function readJson({ text, start }: Part, reading: Reading): void {
  try {
    const { node, values } = parseJson(text, reading.budget.tokens);
    if (!outOfTokens(values, reading)) readDocument(node, start, reading);
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    failAt(start + error.offset, error.message, reading);
  }
}

function readDocument(node: YamlNode, partStart: number, reading: Reading): void {
  const { file, options, lines } = reading;
  const reader = new Reader(reading.budget);
  const value = reader.read(node, []);
  const [repeated, wrong] = options.onRepeatedKey === undefined ? [[], reader.problems] : split(reader.problems);
  for (const problem of repeated.slice(0, maxProblems)) options.onRepeatedKey?.(problemAt(problem, partStart, reading));
  for (const problem of wrong.slice(0, maxProblems)) fail(problemAt(problem, partStart, reading), reading);
  if (wrong.length > 0 || value === null) return;
  const locate: Origin["locate"] = (path) => lines.place(partStart + (reader.offsetOf(value, path) ?? node.start));
  reading.documents.push({ value, origin: { file, locate } });
}

/** Separates duplicate keys from other problems. */
function split(problems: readonly Problem[]): [readonly Problem[], readonly Problem[]] {
  return [problems.filter(({ repeatedKey }) => repeatedKey), problems.filter(({ repeatedKey }) => !repeatedKey)];
}

function failAt(offset: number, detail: string, reading: Reading): void {
  fail(problemAt({ offset, detail, path: [] }, 0, reading), reading);
}

function problemAt(
  { offset, detail, path }: Omit<Problem, "repeatedKey">,
  partStart: number,
  { file, lines }: Reading,
): ManifestError {
  const position = lines.place(partStart + offset);
  const field = path.length === 0 ? undefined : formatPath(path);
  return new ManifestError({ file, position, field }, lines.templateProblem(position.line) ?? detail);
}

function fail(error: ManifestError, { documents, errors, options, budget }: Reading): void {
  if (documents.length > 0 && options.onLaterError !== undefined) options.onLaterError(error);
  else errors.push(error);
  if (--budget.problems < 0) budget.values = -1;
}
