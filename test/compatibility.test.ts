import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { missing, readRows, unshown, type Row } from "../scripts/compatibility.ts";

const head = "| behaviour | podwright | test |\n|---|---|---|\n";

function rowsOf(...lines: readonly string[]): Row[] {
  const { rows, problems } = readRows("a.md", `${head}${lines.join("\n")}`);
  assert.deepEqual(problems, []);
  return rows;
}

describe("a table of behaviours", () => {
  test("is read row by row, with the tests that it names", () => {
    const [row, other] = rowsOf(
      "| a \\| b | differs: more | `src/a.test.ts: outer > inner: 1`, `src/b.test.ts: b` |",
      "| later | not yet: ignored | `src/b.test.ts: b` |",
    );
    assert.deepEqual(row, {
      place: "a.md:3",
      behaviour: "a | b",
      verdict: "differs: more",
      tests: [
        { file: "src/a.test.ts", title: "outer > inner: 1", elsewhere: false },
        { file: "src/b.test.ts", title: "b", elsewhere: false },
      ],
    });
    assert.equal(other?.verdict, "not yet: ignored");
  });

  test("says what podwright does, how it differs, which error it gives, and which test shows it", () => {
    const test1 = "`src/a.test.ts: a`";
    const lines: readonly [string, string][] = [
      ["| a | same |", "a.md:3: a row has three cells: behaviour, podwright, test"],
      [`| a | equal | ${test1} |`, "a.md:3: what podwright does begins with same, differs, refused, not yet"],
      ["| a | same | by nothing |", "a.md:3: names no test"],
      ["| a | not yet: ignored | |", "a.md:3: names no test"],
      ["| a | same | `test/vm/a.test.ts: a` |", "a.md:3: says not where test/vm/a.test.ts runs"],
      [`| a | differs | ${test1} |`, "a.md:3: says not how"],
      [`| a | refused: by name | ${test1} |`, "a.md:3: does not quote the error"],
    ];
    for (const [line, problem] of lines) assert.deepEqual(readRows("a.md", head + line).problems, [problem]);
  });
});

describe("a test that a row names", () => {
  const file =
    'describe("outer", () => { test("in \\"ner\\"", f); test(`${name} is ${value}`, f); test(`${x}`, f); });';
  const problemsOf = (title: string): string[] =>
    missing(rowsOf("| a | same | `src/a.test.ts: " + title + "` |"), (path) =>
      path === "src/a.test.ts" ? file : undefined,
    );

  test("stands in its file, as it is or as a template makes it", () => {
    assert.deepEqual(problemsOf('outer > in "ner"'), []);
    assert.deepEqual(problemsOf("outer > one is 1"), []);
    assert.deepEqual(problemsOf("outer > inn"), ['a.md:3: src/a.test.ts has no test "outer > inn"']);
    const lost = rowsOf("| a | same | `src/lost.test.ts: a` |");
    assert.deepEqual(
      missing(lost, () => undefined),
      ["a.md:3: there is no src/lost.test.ts"],
    );
  });

  test("has run once its file has; it is skipped only where its row says where it runs", () => {
    const [row, elsewhere] = ["", " (runs on cgroup v2)"].map((where) =>
      rowsOf("| a | same | `src/a.test.ts: outer > a`" + where + " |"),
    );
    assert.ok(row && elsewhere);
    const ran = (outcome: "passed" | "failed" | "skipped", title = "outer > a") =>
      new Map([["src/a.test.ts", [{ title, outcome }]]]);
    assert.deepEqual(unshown(row, ran("passed")), []);
    assert.deepEqual(unshown(row, new Map()), [], "another file was asked for");
    assert.deepEqual(unshown(row, ran("failed")), [], "a failed test speaks for itself");
    assert.deepEqual(unshown(row, ran("skipped")), ['a.md:3: "outer > a" of src/a.test.ts was skipped']);
    assert.deepEqual(unshown(row, ran("passed", "a")), ['a.md:3: "outer > a" of src/a.test.ts did not run']);
    assert.deepEqual(unshown(elsewhere, ran("skipped")), []);
  });
});
