import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { agrees } from "./agree.ts";

/** The answer to a question, and what was printed for it. @param typed undefined: the input is closed */
async function asked(typed: string | undefined, at: { readonly isTTY: boolean; readonly interactive: boolean }) {
  const input = Object.assign(new PassThrough(), { isTTY: at.isTTY });
  const output = new PassThrough();
  if (typed === undefined) input.end();
  else input.write(typed);
  const answer = await agrees(at, "Remove it?", { input, output });
  return [answer, String(output.read() ?? "")];
}

test("a question is answered with y or yes; anything else, or the end of the input, means no", async () => {
  const terminal = { isTTY: true, interactive: true };
  for (const typed of ["y\n", "Yes\n", " y \n"]) {
    assert.deepEqual(await asked(typed, terminal), [true, "Remove it? [y/N] "], typed);
  }
  for (const typed of ["\n", "n\n", "yep\n", undefined]) {
    assert.equal((await asked(typed, terminal))[0], false, String(typed));
  }
});

test("without a terminal nothing is asked", async () => {
  assert.deepEqual(await asked("y\n", { isTTY: false, interactive: true }), [undefined, ""]);
  assert.deepEqual(await asked("y\n", { isTTY: true, interactive: false }), [undefined, ""]);
});
