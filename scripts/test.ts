/**
 * The test runner. Small unit tests share a process, every other file has one of its own. Unit and integration tests
 * run two at a time, the others one after the other.
 *
 *   test.ts [--unit] [--long] [--vm] [--again] [PATH…]
 *
 * Without arguments: unit tests, then simulated lives, then integration tests. `--unit`: only tests that need neither
 * root nor a runtime. `--long`: also the long ones. `--vm`: only those for the machine of test/vm/run.sh, with their
 * output. PATH: only test files at, under or containing it. `--again`: up to three failed files run again, alone; those
 * that pass are listed at the end, because they are still defects. Random tests use a constant seed, except with
 * `--long`, which prints its own; PODWRIGHT_TEST_SEED sets it. The last line is `N passed, N failed`; the exit code is
 * 1 if a test failed, a file crashed or nothing ran.
 */
import { randomInt } from "node:crypto";
import { existsSync, globSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { performance } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { eachOf } from "../src/base/side-by-side.ts";
import { readAllRows, unshown } from "./compatibility.ts";
import { type FileResult, runTestFile, runTogether } from "./test-file.ts";
import type { TestOutcome } from "./test-reporter.ts";

const root = dirname(import.meta.dirname);
const minuteMs = 60_000;
/** Maximum number of files that `--again` runs a second time. */
const mostAgain = 3;

/** Files with the same settings. */
interface Group {
  readonly files: readonly string[];
  /** How many processes run at a time. */
  readonly atOnce: number;
  /** How many files share a process. */
  readonly together?: number;
  readonly timeoutMs: number;
  readonly needsRoot: boolean;
  /** Shows each test as it ends, and the files' output also when nothing failed. */
  readonly prints?: boolean;
}

/** The test files that the arguments select. A PATH of a test file outside of the project is used as it is. */
function plan(options: {
  readonly unit: boolean;
  readonly long: boolean;
  readonly vm: boolean;
  readonly filters: readonly string[];
}): Group[] {
  const inProject = (path: string): string => relative(root, resolve(path));
  const wanted = (file: string): boolean =>
    options.filters.length === 0 ||
    options.filters.some((filter) => file.includes(filter) || file.startsWith(inProject(filter)));
  const find = (...patterns: string[]): string[] => globSync(patterns, { cwd: root }).toSorted().filter(wanted);
  if (options.vm) {
    // Others only by name, as run.sh names the files of its parts: they take hours, and those of packages restart it.
    const usual = ["test/vm/*.test.ts", "test/integration/user-namespaces.test.ts"];
    const all = ["test/vm/**/*.test.ts", "test/integration/*.test.ts"];
    const files = find(...(options.filters.length > 0 ? all : usual));
    const patience = Number(process.env["PODWRIGHT_TEST_PATIENCE"] ?? 1);
    return [{ files, atOnce: 1, timeoutMs: 5 * patience * minuteMs, needsRoot: true, prints: true }];
  }
  const isForeign = (path: string): boolean => path.endsWith(".test.ts") && inProject(path).startsWith("..");
  const foreign = options.filters.filter((path) => isForeign(path) && existsSync(path));
  const unit = { atOnce: Math.max(2, availableParallelism()), timeoutMs: 3 * minuteMs, needsRoot: false };
  const alone = [...find("test/*.test.ts", "test/apiserver/*.test.ts"), ...foreign.map((path) => resolve(path))];
  const groups: Group[] = [
    { ...unit, files: find("src/**/*.test.ts", "web/*.test.ts", "bench/support/*.test.ts"), together: 12 },
    { ...unit, files: alone },
  ];
  if (!options.unit) {
    // Uses all cores by itself.
    groups.push({ files: find("test/sim/*.test.ts"), atOnce: 1, timeoutMs: 20 * minuteMs, needsRoot: false });
    // Mostly idle waits; each has its own node.
    const files = find("test/integration/**/*.test.ts");
    groups.push({ files, atOnce: 2, timeoutMs: 10 * minuteMs, needsRoot: true });
  }
  if (options.long) {
    groups.push({ files: find("test/long/**/*.test.ts"), atOnce: 1, timeoutMs: 60 * minuteMs, needsRoot: true });
  }
  return groups.filter((group) => group.files.length > 0);
}

function indent(text: string): string {
  return text.trimEnd().replaceAll(/^/gm, "    ");
}

function isBad(result: FileResult): boolean {
  return result.crash !== undefined || result.tests.some((test) => test.outcome === "failed");
}

/** One line for a test that ended, where files take long. */
function printTest({ outcome, title, durationMs }: TestOutcome): void {
  if (outcome !== "skipped") console.log(`  ${outcome} after ${(durationMs / 1000).toFixed(1)} s: ${title}`);
}

/** One line for the file; below it the failures with the file's output. */
function printFile(result: FileResult, { prints = false }: Group): void {
  const failed = result.tests.filter((test) => test.outcome === "failed");
  const skipped = result.tests.filter((test) => test.outcome === "skipped");
  const bad = isBad(result);
  const count = `${result.tests.length} ${result.tests.length === 1 ? "test" : "tests"}`;
  console.log(`${bad ? "FAIL" : "ok  "} ${result.file}  ${count}, ${(result.durationMs / 1000).toFixed(1)} s`);
  for (const test of skipped) console.log(`  skipped: ${test.title}: ${test.detail || "no reason given"}`);
  for (const test of failed) {
    const place = test.file === undefined ? result.file : `${relative(root, test.file)}:${test.line ?? 1}`;
    console.log(`  failed: ${test.title}\n    at ${place}\n${indent(test.detail)}`);
  }
  if (result.crash !== undefined) console.log(`  failed: ${result.file}: ${result.crash}`);
  if ((bad || prints) && result.output.trim() !== "") console.log(`  it printed:\n${indent(result.output)}`);
}

function inLots<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, lot) => items.slice(lot * size, (lot + 1) * size));
}

/** Runs a group's files, printing each as it ends. */
async function runGroup(group: Group, scratch: string, signal: AbortSignal): Promise<FileResult[]> {
  const results: FileResult[] = [];
  const onTest = group.prints ? printTest : undefined;
  const options = { root, scratch, timeoutMs: group.timeoutMs, signal, onTest };
  await eachOf(inLots(group.files, group.together ?? 1), group.atOnce, async (files) => {
    if (signal.aborted) return;
    const [only] = files;
    // A machine that ends early leaves no other trace of the file.
    if (group.prints) for (const file of files) console.log(`run  ${file}`);
    const ended =
      files.length === 1 && only !== undefined ? [await runTestFile(only, options)] : await runTogether(files, options);
    results.push(...ended);
    for (const result of ended) printFile(result, group);
  });
  return results;
}

/**
 * Runs failed files again, alone: on a loaded machine correct tests may time out. Not if there are more than a few,
 * which have another reason; nor for seeded tests, which would fail again.
 * @returns the final results, and the files that passed only now
 */
async function runAgain(
  group: Group,
  results: readonly FileResult[],
  scratch: string,
  signal: AbortSignal,
): Promise<{ readonly results: FileResult[]; readonly unsure: string[] }> {
  const bad = results.filter(isBad);
  if (bad.length === 0 || bad.length > mostAgain) return { results: [...results], unsure: [] };
  console.log(`once more, alone: ${bad.map(({ file }) => file).join(", ")}`);
  const files = bad.map(({ file }) => file);
  const second = await runGroup({ ...group, files, atOnce: 1, together: 1 }, scratch, signal);
  const unsure = second.filter((result) => !isBad(result)).map(({ file }) => file);
  return { results: [...results.filter((result) => !isBad(result)), ...second], unsure };
}

/**
 * @param unshownRows the number of tests named in docs/compatibility/ that were missing or skipped: they count as
 *   failed
 */
function summarize(
  results: readonly FileResult[],
  unshownRows: number,
): { readonly line: string; readonly good: boolean } {
  const tests = results.flatMap((result) => result.tests);
  const count = (outcome: string): number => tests.filter((test) => test.outcome === outcome).length;
  const failed = count("failed") + results.filter((result) => result.crash !== undefined).length + unshownRows;
  const skipped = count("skipped");
  const line = `${count("passed")} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
  return { line, good: failed === 0 && count("passed") > 0 };
}

const usage = "usage: test.ts [--unit] [--long] [--vm] [--again] [PATH…]";

/** @throws TypeError for an unknown option */
function readArguments() {
  const flag = { type: "boolean", default: false } as const;
  const options = { unit: flag, long: flag, vm: flag, again: flag, help: flag };
  return parseArgs({ options, allowPositionals: true });
}

async function main(): Promise<number> {
  let given: ReturnType<typeof readArguments>;
  try {
    given = readArguments();
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n${usage}`);
    return 2;
  }
  const { values, positionals } = given;
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const groups = plan({ ...values, filters: positionals });
  if (groups.some((group) => group.needsRoot) && process.getuid?.() !== 0) {
    console.error("integration tests need root: run them as root, or `npm run test:unit` for those that do not");
    return 3;
  }
  const interrupted = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => interrupted.abort(name));

  process.env["PODWRIGHT_TEST_SEED"] ??= values.long ? String(randomInt(2 ** 31)) : "1";
  console.log(`seed ${process.env["PODWRIGHT_TEST_SEED"]}`);
  const started = performance.now();
  const scratch = await mkdtemp(join(tmpdir(), "podwright-test-"));
  const results: FileResult[] = [];
  const unsure: string[] = [];
  try {
    for (const group of groups) {
      const first = await runGroup(group, scratch, interrupted.signal);
      const second = values.again ? await runAgain(group, first, scratch, interrupted.signal) : undefined;
      results.push(...(second?.results ?? first));
      unsure.push(...(second?.unsure ?? []));
    }
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
  const problems = unshown(readAllRows(root).rows, new Map(results.map(({ file, tests }) => [file, tests])));
  for (const problem of problems) console.log(`FAIL ${problem}`);
  const { line, good } = summarize(results, problems.length);
  if (results.length === 0) console.log("no test file was found");
  if (interrupted.signal.aborted) console.log(`interrupted by ${String(interrupted.signal.reason)}`);
  for (const file of unsure) console.log(`UNSURE ${file}: passed only the second time`);
  console.log(`\n${results.length} files in ${((performance.now() - started) / 1000).toFixed(1)} s`);
  console.log(line);
  return good && !interrupted.signal.aborted ? 0 : 1;
}

process.exitCode = await main();
