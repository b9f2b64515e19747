import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { describe, test } from "node:test";
import { blindMutants } from "../scripts/mutants/blind.ts";
import { huntAll, mutants, patched } from "../scripts/mutants/hunt.ts";

describe("mutants of the simulator", () => {
  test("each changes one place of its file, and what comes of it can be read", () => {
    for (const mutant of mutants) {
      const { text, problem } = patched(mutant, readFileSync(new URL(`../${mutant.file}`, import.meta.url), "utf8"));
      assert.equal(problem, undefined, mutant.name);
      assert.doesNotThrow(() => stripTypeScriptTypes(text), mutant.name);
    }
  });

  test("there are 40 at least, ten of them chosen blind, each with a name of its own", () => {
    assert.ok(mutants.length >= 40 && blindMutants.length >= 10);
    assert.equal(new Set(mutants.map(({ name }) => name)).size, mutants.length);
  });

  test("some that are easy to find are found at once", async () => {
    const easy = new Set(["back-off-ignored", "grace-halved"]);
    const chosen = mutants.filter(({ name }) => easy.has(name));
    const hunts = await huntAll(chosen, { starts: [1], most: 10, threads: 1 });
    assert.deepEqual(
      hunts.map(({ mutant, rules }) => [mutant.name, rules.length]),
      chosen.map(({ name }) => [name, 1]),
    );
  });
});
