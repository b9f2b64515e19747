/**
 * Checks docs/compatibility/*.md against the tests. Each row of those tables has a behaviour of a kubelet, podwright's
 * version of it, and the tests that show it, as `path/to/file.test.ts: title`, with the titles of suites before it
 * joined by " > ".
 *
 * compatibility.ts checks that every named test is in its file, as far as that is visible without running it
 *
 * The test runner checks the rest: that each named test ran ({@link unshown}).
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { TestOutcome } from "./test-reporter.ts";

export interface NamedTest {
  readonly file: string;
  /** As reported: titles of the suites and its own, joined by " > ". */
  readonly title: string;
  /** The row says where it runs, "(runs on …)": elsewhere it may be skipped or left out. */
  readonly elsewhere: boolean;
}

export interface Row {
  /** `file:line`, for messages. */
  readonly place: string;
  readonly behaviour: string;
  /** podwright's behaviour in words, beginning with one of {@link verdicts}. */
  readonly verdict: string;
  readonly tests: readonly NamedTest[];
}

/**
 * The beginnings of the second cell; all but the first are followed by details: the difference, the error, what happens
 * instead.
 */
export const verdicts = ["same", "differs", "refused", "not yet"] as const;

/** The results of a file's tests by title. */
export type RunFiles = ReadonlyMap<string, readonly Pick<TestOutcome, "title" | "outcome">[]>;

/** Parses the tables of one document; unparsable rows are problems. Pure. */
export function readRows(path: string, text: string): { readonly rows: Row[]; readonly problems: string[] } {
  const rows: Row[] = [];
  const problems: string[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    const place = `${path}:${index + 1}`;
    if (!line.startsWith("|") || /^\| *(?:behaviour|-+) *\|/.test(line)) continue;
    const [behaviour, verdict, tests, ...rest] = cellsOf(line);
    if (behaviour === undefined || verdict === undefined || tests === undefined || rest.length > 0) {
      problems.push(`${place}: a row has three cells: behaviour, podwright, test`);
      continue;
    }
    const row = { place, behaviour, verdict, tests: namedTests(tests) };
    rows.push(row);
    const kind = verdicts.find((word) => verdict.startsWith(word));
    if (kind === undefined) problems.push(`${place}: what podwright does begins with ${verdicts.join(", ")}`);
    if (row.tests.length === 0) problems.push(`${place}: names no test`);
    for (const { file, elsewhere } of row.tests) {
      if (/^test\/(?:long|vm)\//.test(file) && !elsewhere) problems.push(`${place}: says not where ${file} runs`);
    }
    const saysHow = kind === undefined || kind === "same" || verdict.length >= kind.length + 5;
    if (!saysHow) problems.push(`${place}: says not how`);
    if (kind === "refused" && !verdict.includes("`")) problems.push(`${place}: does not quote the error`);
  }
  return { rows, problems };
}

function cellsOf(line: string): string[] {
  const inner = line.trimEnd().replace(/^\|/, "").replace(/\|$/, "");
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll(String.raw`\|`, "|"));
}

function namedTests(cell: string): NamedTest[] {
  const found = cell.matchAll(/`([^`\s]+\.test\.ts): ([^`]+)`( \(runs [^)]+\))?/g);
  return [...found].map(([, file = "", title = "", where]) => ({ file, title, elsewhere: where !== undefined }));
}

/**
 * Tests in rows that are missing from their files. Titles composed at run time are compared with the file's templates,
 * so a wrong title may pass here; {@link unshown} finds it.
 * @param read the text of a file, undefined if missing
 */
export function missing(rows: readonly Row[], read: (path: string) => string | undefined): string[] {
  const known = new Map<string, ((title: string) => boolean) | undefined>();
  const titlesOf = (file: string): ((title: string) => boolean) | undefined => {
    const text = known.has(file) ? undefined : read(file);
    if (text !== undefined) known.set(file, titleMatcher(text));
    return known.get(file);
  };
  return rows.flatMap(({ place, tests }) =>
    tests.flatMap(({ file, title }) => {
      const stands = titlesOf(file);
      if (stands === undefined) return [`${place}: there is no ${file}`];
      return stands(title) ? [] : [`${place}: ${file} has no test "${title}"`];
    }),
  );
}

/** Matches titles of which every part is a string of the file, or an instance of a template. */
function titleMatcher(text: string): (title: string) => boolean {
  const texts = new Set<string>();
  for (const [, quoted] of text.matchAll(/("(?:[^"\\\n]|\\.)*")/g)) texts.add(unquoted(quoted ?? ""));
  for (const [, quoted = ""] of text.matchAll(/'((?:[^'\\\n]|\\.)*)'/g)) texts.add(quoted.replaceAll("\\'", "'"));
  const templates: RegExp[] = [];
  for (const [, template = ""] of text.matchAll(/`((?:[^`\\]|\\.)*)`/g)) {
    const pieces = template.split(/\$\{[^}]*\}/);
    if (pieces.length > 1 && pieces.some((piece) => piece.trim() !== "")) {
      templates.push(new RegExp(`^${pieces.map(escaped).join(".*")}$`, "s"));
    }
  }
  const stands = (part: string): boolean => texts.has(part) || templates.some((template) => template.test(part));
  // A title may contain the separator itself.
  return (title) => stands(title) || title.split(" > ").every(stands);
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);
}

function unquoted(literal: string): string {
  try {
    return JSON.parse(literal) as string;
  } catch {
    return literal.slice(1, -1);
  }
}

/** Tests in rows that were skipped or are missing from their files; failed tests are reported anyway. Pure. */
export function unshown(rows: readonly Row[], ran: RunFiles): string[] {
  return rows.flatMap(({ place, tests }) =>
    tests.flatMap(({ file, title, elsewhere }) => {
      const outcomes = ran.get(file)?.filter((test) => test.title === title);
      if (outcomes === undefined) return [];
      if (outcomes.length === 0) return [`${place}: "${title}" of ${file} did not run`];
      const skipped = !elsewhere && outcomes.some(({ outcome }) => outcome === "skipped");
      return skipped ? [`${place}: "${title}" of ${file} was skipped`] : [];
    }),
  );
}

/** The rows of all documents below the project's root. */
export function readAllRows(root: string): { readonly rows: Row[]; readonly problems: string[] } {
  const documents = globSync("docs/compatibility/*.md", { cwd: root }).toSorted();
  const read = documents.map((path) => readRows(path, readFileSync(join(root, path), "utf8")));
  return { rows: read.flatMap(({ rows }) => rows), problems: read.flatMap(({ problems }) => problems) };
}

if (import.meta.main) {
  const root = dirname(import.meta.dirname);
  const { rows, problems } = readAllRows(root);
  const read = (path: string): string | undefined =>
    existsSync(join(root, path)) ? readFileSync(join(root, path), "utf8") : undefined;
  const found = [...problems, ...missing(rows, read)];
  if (rows.length === 0) found.push("docs/compatibility/ holds no row");
  for (const problem of found) console.log(problem);
  const count = (word: string): number => rows.filter(({ verdict }) => verdict.startsWith(word)).length;
  console.log(`${rows.length} rows: ${verdicts.map((word) => `${count(word)} ${word}`).join(", ")}`);
  process.exitCode = found.length === 0 ? 0 : 1;
}
