import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { mutants } from "../scripts/mutants/hunt.ts";

const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), "utf8");

/** Cells of the rows of all tables of that many columns, without their heads. */
function rows(columns: number): string[][] {
  const lines = read("docs/simulator.md").split("\n");
  return lines
    .filter((line, index) => {
      const isHead = [line, lines[index + 1]].some((each) => each?.startsWith("|-"));
      return line.startsWith("|") && !isHead;
    })
    .map((line) => line.split("|").slice(1, -1))
    .filter((cells) => cells.length === columns);
}

describe("docs/simulator.md", () => {
  test("names an existing test for each bug that the simulator found", () => {
    const found = rows(3);
    assert.ok(found.length > 60);
    for (const [bug = "", , tests = ""] of found) {
      const names = [...tests.matchAll(/`([^`:]+\.test\.ts): ([^`]+)`/gu)];
      assert.ok(names.length > 0, bug);
      for (const [, file = "", name = ""] of names) {
        const text = read(file);
        for (const part of name.split(" > ")) assert.ok(text.includes(part), `${file}: ${part}`);
      }
    }
  });

  test("gives the number of lives for each mutant", () => {
    const told = rows(4).map(([name = ""]) => /`([^`]+)`/u.exec(name)?.[1]);
    assert.equal(told.length, mutants.length);
    assert.deepEqual(new Set(told), new Set(mutants.map(({ name }) => name)));
  });
});
