import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { invariant, InvariantError, onBrokenInvariant } from "./invariant.ts";

describe("an invariant", () => {
  test("throws if violated, and formats no message if it holds", () => {
    invariant("one is one", true, () => assert.fail("nobody asks"));
    const fails = (): void => invariant("one is two", Number("1") === 2, () => "it is 1");
    assert.throws(fails, new InvariantError("one is two", "it is 1"));
  });

  test("is passed to a handler instead, until that is disposed of", () => {
    const told: string[] = [];
    {
      using _told = onBrokenInvariant((name, detail) => told.push(`${name}: ${detail}`));
      invariant("one is two", false, () => "it is 1");
    }
    assert.deepEqual(told, ["one is two: it is 1"]);
    assert.throws(() => invariant("one is two", false, () => "it is 1"), InvariantError);
  });

  test("has a name of its own", () => {
    const src = join(import.meta.dirname, "..");
    const names = globSync("**/*.ts", { cwd: src, exclude: ["**/*.test.ts"] }).flatMap((path) => {
      return [...readFileSync(join(src, path), "utf8").matchAll(/\binvariant\(\s*"([^"]+)"/gu)].map(([, name]) => name);
    });
    assert.ok(names.length > 0);
    const again = names.filter((name, index) => names.indexOf(name) !== index);
    assert.deepEqual(again, []);
  });
});
