import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { shellWord } from "./shell-word.ts";

test("plain words stay as they are, others are quoted", () => {
  assert.equal(shellWord("/var/lib/podwright-1.0"), "/var/lib/podwright-1.0");
  assert.equal(shellWord("/tmp/with space"), '"/tmp/with space"');
  assert.equal(shellWord("it's"), `"it's"`);
  assert.equal(shellWord("$HOME's"), String.raw`'$HOME'\''s'`);
});

test("a shell reads a quoted word as it was", () => {
  for (const text of ["", "a b", "~", "*", "a;b", "$HOME", "`id`", "a\\b", 'a"b', "it's $5", "!x", "#x", "a\nb", "ä"]) {
    const { stdout } = spawnSync("sh", ["-c", `printf %s ${shellWord(text)}`], { encoding: "utf8" });
    assert.equal(stdout, text);
  }
});
