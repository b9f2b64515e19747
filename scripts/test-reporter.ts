/**
 * A reporter for node:test that appends one JSON line for each finished test to the file named by
 * PODWRIGHT_TEST_EVENTS, immediately, so that a later crash loses nothing.
 */
import { appendFileSync } from "node:fs";
import type { TestEvent } from "node:test/reporters";
import { inspect } from "node:util";

/** The result of one test (not a suite). */
export interface TestOutcome {
  /** Titles of the suites around it and its own. */
  readonly title: string;
  readonly outcome: "passed" | "failed" | "skipped";
  readonly file: string | undefined;
  readonly line: number | undefined;
  /** failed: the error with its stack; skipped: the reason, empty when none was given. */
  readonly detail: string;
  readonly durationMs: number;
}

/** node:test's final totals. */
const totals = /^(?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+$/;

/** Longer error texts are useless. */
const detailLimit = 8 * 1024;

/** The stack of an error and its causes, without the frames of Node.js itself. */
function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error === "string" ? error : inspect(error, { depth: 6 });
  const own = (error.stack ?? error.message).replaceAll(/^ +at .*\(?node:[\w/]+:\d+:\d+\)?\n?/gm, "").trimEnd();
  return error.cause === undefined ? own : `${own}\nbecause of ${stackOf(error.cause)}`;
}

/** node:test wraps a test's error; the wrapper's own stack is useless. */
function describeError(error: unknown): string {
  const text = stackOf(error instanceof Error && error.cause !== undefined ? error.cause : error);
  return text.length > detailLimit
    ? `${text.slice(0, detailLimit)}\n… ${text.length - detailLimit} more characters`
    : text;
}

/** A test or suite fails with its nested tests; counting it too would count each failure twice. */
function failedOnlyInside(error: unknown): boolean {
  return error instanceof Error && "failureType" in error && error.failureType === "subtestsFailed";
}

// oxlint-disable-next-line import/no-default-export -- `--test-reporter` takes a module's default export
export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const path = process.env["PODWRIGHT_TEST_EVENTS"];
  if (path === undefined) throw new Error("PODWRIGHT_TEST_EVENTS must name a file");
  /** Titles of the enclosing tests and suites, outermost first. */
  const titles: string[] = [];
  for await (const event of events) {
    if (event.type === "test:start") {
      titles.length = event.data.nesting;
      titles.push(event.data.name);
    } else if (event.type === "test:pass" || event.type === "test:fail") {
      const { data } = event;
      const error = event.type === "test:fail" ? event.data.details.error : undefined;
      if (failedOnlyInside(error) || (data.details.type === "suite" && error === undefined)) continue;
      const skipped = data.skip !== undefined && data.skip !== false;
      const outcome: TestOutcome = {
        title: [...titles.slice(0, data.nesting), data.name].join(" > "),
        outcome: skipped ? "skipped" : error === undefined ? "passed" : "failed",
        file: data.file,
        line: data.line,
        detail: skipped
          ? typeof data.skip === "string"
            ? data.skip
            : ""
          : error === undefined
            ? ""
            : describeError(error),
        durationMs: data.details.duration_ms,
      };
      appendFileSync(path, `${JSON.stringify(outcome)}\n`);
    } else if (event.type === "test:diagnostic" && !totals.test(event.data.message)) {
      // Output of tests, and errors after their end.
      yield `${event.data.message}\n`;
    }
  }
}
