import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { runTestFile } from "../scripts/test-file.ts";
import type { TestOutcome } from "../scripts/test-reporter.ts";

const root = dirname(import.meta.dirname);

describe("the test runner", () => {
  let folder = "";
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "podwright-runner-"));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  /** Runs test files with these texts; the lines that the runner printed, and its exit code. */
  async function run(...texts: readonly string[]): Promise<{ readonly lines: string[]; readonly code: number | null }> {
    const paths = texts.map((_, index) => join(folder, `sample-${index}.test.ts`));
    for (const [index, path] of paths.entries()) {
      await writeFile(path, `import { describe, test } from "node:test";\n${texts[index]}\n`);
    }
    const { stdout, status } = spawnSync(process.execPath, ["scripts/test.ts", "--unit", ...paths], {
      cwd: root,
      encoding: "utf8",
    });
    return { lines: stdout.trimEnd().split("\n"), code: status };
  }

  it("ends with the counts of all files", async () => {
    const { lines, code } = await run('test("a", () => {});', 'describe("b", () => { test("c", () => {}); });');
    assert.equal(lines.at(-1), "2 passed, 0 failed");
    assert.equal(code, 0);
  });
  it("names a failed test, its place and its message, and counts it once however deep it stands", async () => {
    const { lines, code } = await run(
      'describe("outer", () => { test("inner", () => { throw new Error("boom"); }); });',
    );
    assert.ok(lines.includes("  failed: outer > inner"));
    assert.ok(lines.some((line) => line.endsWith("sample-0.test.ts:2")));
    assert.ok(lines.some((line) => line.trim() === "Error: boom"));
    assert.equal(lines.at(-1), "0 passed, 1 failed");
    assert.equal(code, 1);
  });
  it("prints a skipped test with its reason", async () => {
    const { lines, code } = await run('test("a", () => {}); test("b", { skip: "no luck" }, () => {});');
    assert.ok(lines.includes("  skipped: b: no luck"));
    assert.equal(lines.at(-1), "1 passed, 0 failed, 1 skipped");
    assert.equal(code, 0);
  });
  it("fails a file that crashes, keeping what its tests had shown and what it printed", async () => {
    const crash =
      'test("a", () => {}); test("b", async () => { console.log("last words"); await new Promise((resolve) => setTimeout(resolve, 20)); process.exit(7); });';
    const { lines, code } = await run(crash);
    assert.ok(lines.some((line) => line.endsWith("exited with code 7 though no test failed")));
    assert.ok(lines.includes("    last words"));
    assert.equal(lines.at(-1), "1 passed, 1 failed");
    assert.equal(code, 1);
  });
  it("fails an error that comes after its test had ended", async () => {
    const late = 'test("a", () => { setTimeout(() => { throw new Error("late"); }, 5); });';
    const { lines, code } = await run(`${late} test("b", () => new Promise((resolve) => setTimeout(resolve, 50)));`);
    assert.ok(lines.some((line) => line.includes("late")));
    assert.equal(lines.at(-1), "2 passed, 1 failed");
    assert.equal(code, 1);
  });
  it("tells of each test soon after its end, while the file goes on", async () => {
    const path = join(folder, "slow.test.ts");
    const go = join(folder, "go-on");
    const waits = `while (!existsSync(${JSON.stringify(go)})) await new Promise((done) => setTimeout(done, 20));`;
    await writeFile(
      path,
      `import { existsSync } from "node:fs"; import { test } from "node:test";
test("first", () => {}); test("second", async () => { ${waits} });`,
    );
    const told: string[] = [];
    const onTest = ({ title }: TestOutcome): void => {
      // The file ends only if the first test was told of before.
      if (told.push(title) === 1) writeFileSync(go, "");
    };
    const signal = new AbortController().signal;
    const { crash } = await runTestFile(path, { root, scratch: folder, timeoutMs: 60_000, signal, onTest });
    assert.equal(crash, undefined);
    assert.deepEqual(told, ["first", "second"]);
  });
  it("repeats failed tests on request, and reports which passed only then", async () => {
    const mark = join(folder, "ran-before");
    const path = join(folder, "unsure.test.ts");
    const text = `import { existsSync, writeFileSync } from "node:fs"; import { test } from "node:test";
test("a", () => { if (existsSync(${JSON.stringify(mark)})) return; writeFileSync(${JSON.stringify(mark)}, ""); throw new Error("once"); });`;
    await writeFile(path, text);
    const again = spawnSync(process.execPath, ["scripts/test.ts", "--unit", "--again", path], {
      cwd: root,
      encoding: "utf8",
    });
    assert.match(
      again.stdout,
      /Error: once[^]*once more, alone: [^]*UNSURE .*unsure\.test\.ts: passed only the second time/,
    );
    assert.match(again.stdout, /\n1 passed, 0 failed\n$/);
    assert.equal(again.status, 0);
  });
  it("fails a file without tests, and a run in which all were skipped", async () => {
    const empty = await run("export {};");
    assert.equal(empty.lines.at(-1), "0 passed, 1 failed");
    assert.equal(empty.code, 1);
    const skipped = await run('test("a", { skip: "why" }, () => {});');
    assert.equal(skipped.lines.at(-1), "0 passed, 0 failed, 1 skipped");
    assert.equal(skipped.code, 1);
  });
});
