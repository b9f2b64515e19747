/** Runs test files, one or several in a process, and collects the outcomes of their tests. */
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import type { TestOutcome } from "./test-reporter.ts";

export interface FileResult {
  /** As requested: relative to the project's root. */
  readonly file: string;
  readonly tests: readonly TestOutcome[];
  /** Why the file as a whole failed, beyond its tests: a crash, a time-out, no tests at all. */
  readonly crash: string | undefined;
  /** The end of its output on stdout and stderr. */
  readonly output: string;
  readonly durationMs: number;
}

export interface FileOptions {
  /** The project's root, and the working directory. */
  readonly root: string;
  /** A folder for the test events; the caller removes it. */
  readonly scratch: string;
  /** Time limit of the file. */
  readonly timeoutMs: number;
  /** Ends the file early. */
  readonly signal: AbortSignal;
  /** Called soon after each test's end. */
  readonly onTest?: ((test: TestOutcome) => void) | undefined;
}

const lookEveryMs = 1_000;

/** Time between SIGTERM and SIGKILL. */
const graceMs = 10_000;
/** Maximum output that is kept. */
const outputLimit = 64 * 1024;

const togetherEntry = "scripts/test-together.ts";

interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly timedOut: boolean;
  readonly output: string;
}

/** Runs Node.js in its own process group, so that leftover processes can be killed with it. */
async function runNode(args: readonly string[], eventsPath: string, options: FileOptions): Promise<Exit> {
  const { root, timeoutMs, signal } = options;
  const environment: NodeJS.ProcessEnv = {
    ...process.env,
    PODWRIGHT_TEST_EVENTS: eventsPath,
    // Caches type stripping and compilation across runs.
    NODE_COMPILE_CACHE: join(root, ".cache/compile"),
  };
  // Set when these tests run below another node:test, which would then expect its own protocol on stdout.
  delete environment["NODE_TEST_CONTEXT"];
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: environment,
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  let output = "";
  const keep = (chunk: string): void => {
    output = (output + chunk).slice(-outputLimit);
  };
  child.stdout.setEncoding("utf8").on("data", keep);
  child.stderr.setEncoding("utf8").on("data", keep);

  const signalGroup = (name: NodeJS.Signals): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, name);
    } catch {
      // The group is gone, as intended.
    }
  };
  const ended = Promise.withResolvers<Pick<Exit, "code" | "signal">>();
  child.once("error", ended.reject);
  // "exit", not "close": a leftover daemon may keep the pipes open.
  child.once("exit", (code, signalName) => ended.resolve({ code, signal: signalName }));
  const limit = AbortSignal.timeout(timeoutMs);
  const stop = (): void => {
    signalGroup("SIGTERM");
    void sleep(graceMs, undefined, { ref: false }).then(() => signalGroup("SIGKILL"));
  };
  const stopSignal = AbortSignal.any([limit, signal]);
  stopSignal.addEventListener("abort", stop, { once: true });
  try {
    const exit = await ended.promise;
    return { ...exit, timedOut: limit.aborted, output };
  } finally {
    stopSignal.removeEventListener("abort", stop);
    signalGroup("SIGKILL");
    child.stdout.destroy();
    child.stderr.destroy();
  }
}

function readOutcomes(path: string): TestOutcome[] {
  if (!existsSync(path)) return [];
  // A line that is still being written is read the next time.
  const lines = readFileSync(path, "utf8").split("\n").slice(0, -1);
  return lines.map((line) => JSON.parse(line) as TestOutcome);
}

/** Tells of each test that ends, until disposed of. */
function followOutcomes(path: string, { onTest }: FileOptions): Disposable {
  let told = 0;
  const look = (): void => {
    const tests = readOutcomes(path);
    for (const test of tests.slice(told)) onTest?.(test);
    told = tests.length;
  };
  const timer = onTest && setInterval(look, lookEveryMs);
  return {
    [Symbol.dispose]: () => {
      clearInterval(timer);
      if (onTest !== undefined) look();
    },
  };
}

function explainCrash(exit: Exit, tests: readonly TestOutcome[], timeoutMs: number): string | undefined {
  if (exit.timedOut) {
    const last = tests.at(-1);
    const seen = last === undefined ? "no test had ended" : `the last test that ended: ${last.title}`;
    return `not done within ${timeoutMs / 60_000} minutes, or something keeps its process alive (${seen})`;
  }
  if (exit.signal !== null) return `ended by ${exit.signal}`;
  const failed = tests.some((test) => test.outcome === "failed");
  if (exit.code !== 0 && !failed) return `exited with code ${exit.code} though no test failed`;
  if (exit.code !== 0 && exit.code !== 1) return `exited with code ${exit.code}`;
  if (tests.length === 0) return "holds no test";
  return undefined;
}

async function runProcess(
  name: string,
  args: readonly string[],
  options: FileOptions,
): Promise<{ readonly exit: Exit; readonly tests: TestOutcome[] }> {
  const eventsPath = join(options.scratch, `${name.replaceAll(/[^\w.-]/g, "_")}.jsonl`);
  // The outcomes of an earlier run.
  await rm(eventsPath, { force: true });
  const reporter = `--test-reporter=${join(options.root, "scripts/test-reporter.ts")}`;
  using _told = followOutcomes(eventsPath, options);
  const exit = await runNode([reporter, "--test-reporter-destination=stdout", ...args], eventsPath, options);
  return { exit, tests: readOutcomes(eventsPath) };
}

/** Runs a test file in a process of its own. */
export async function runTestFile(file: string, options: FileOptions): Promise<FileResult> {
  const started = performance.now();
  const { exit, tests } = await runProcess(file, [file], options);
  const crash = explainCrash(exit, tests, options.timeoutMs);
  return { file, tests, crash, output: exit.output, durationMs: performance.now() - started };
}

/**
 * Runs test files one after another in one process. Each file runs again in its own process if this process crashes, to
 * find the culprit. So does a file whose tests are not found because it defines them after an `await`, where node:test
 * no longer knows the file's suite.
 */
export async function runTogether(files: readonly string[], options: FileOptions): Promise<FileResult[]> {
  const { exit, tests } = await runProcess(`${files[0]}-together`, [togetherEntry, ...files], options);
  const isCrash = explainCrash(exit, tests, options.timeoutMs) !== undefined;
  const results: FileResult[] = [];
  for (const file of files) {
    const own = testsOf(file, tests);
    const durationMs = own.reduce((sum, test) => sum + test.durationMs, 0);
    const result = { file, tests: own, crash: undefined, output: exit.output, durationMs };
    results.push(isCrash || own.length === 0 ? await runTestFile(file, options) : result);
  }
  return results;
}

/** The tests below the file's suite, by their titles in it. */
function testsOf(file: string, tests: readonly TestOutcome[]): TestOutcome[] {
  const prefix = `${file} > `;
  const own = tests.filter(({ title }) => title === file || title.startsWith(prefix));
  return own.map((test) => ({ ...test, title: test.title === file ? file : test.title.slice(prefix.length) }));
}
