import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { describe, test } from "node:test";
import { blindMutants } from "../scripts/mutants/blind.ts";
import { UsageError } from "../scripts/command-options.ts";
import { type Hunt, huntAll, mutants, patched } from "../scripts/mutants/hunt.ts";
import { mutantHelp, readMutantOptions } from "../scripts/mutants/options.ts";
import { verdict } from "../scripts/mutants/verdict.ts";

describe("mutants of the simulator", () => {
  test("each changes one place in its file, and the result can be parsed", () => {
    for (const mutant of mutants) {
      const { text, problem } = patched(mutant, readFileSync(new URL(`../${mutant.file}`, import.meta.url), "utf8"));
      assert.equal(problem, undefined, mutant.name);
      assert.doesNotThrow(() => stripTypeScriptTypes(text), mutant.name);
    }
  });

  test("there are at least 40, ten of them chosen blindly, each with a unique name", () => {
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

  test("one that survives counts as not caught", () => {
    const [mutant] = mutants;
    assert.ok(mutant);
    const hunt = (...seeds: Hunt["seeds"]): Hunt => ({ mutant, seeds, rules: [], lives: 1 });
    assert.equal(verdict([hunt(1, 5, 9), hunt(2, 2, 3)], 2), "2 of 2 caught; half of these within 2 seeds");
    const [all, text] = [[hunt(1, 5, 9), hunt(2, undefined)], `1 survived and count as not caught: ${mutant.name}`];
    assert.equal(verdict(all, 2), `1 of 2 caught; half of these within 5 seeds; ${text}`);
    assert.equal(verdict([hunt(undefined)], 1), `0 of 1 caught; ${text}`);
  });

  test("the command rejects invalid options, and lists the valid ones", () => {
    const refused = (...args: string[]): void =>
      assert.throws(() => readMutantOptions(args, mutants), UsageError, args.join(" "));
    refused("--bogus");
    refused("--only", "nonesuch");
    refused("--seed", "0");
    refused("--seed", "4294967295");
    refused("busy");
    assert.deepEqual(readMutantOptions(["--only", "grace-halved"], mutants)?.starts, [1, 10_001, 20_001]);
    assert.equal(readMutantOptions(["--help"], mutants), undefined);
    for (const name of ["only", "seed", "starts", "seeds", "threads", "help"]) {
      assert.match(mutantHelp, new RegExp(`^  --${name}( [A-Z]+)? +\\S+`, "m"));
    }
  });
});
