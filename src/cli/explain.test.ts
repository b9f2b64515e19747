import assert from "node:assert/strict";
import { test } from "node:test";
import { PodwrightError } from "../base/errors.ts";
import { explainCommand } from "./explain.ts";
import { Terminal } from "./terminal.ts";

function fakeTerminal(): { readonly terminal: Terminal; readonly output: () => string } {
  let text = "";
  const write = (data: string | Uint8Array): boolean => {
    text += String(data);
    return true;
  };
  const out = { write, columns: 200 };
  return { terminal: new Terminal(out, out, {}), output: () => text };
}

function explained(...names: string[]): string {
  const { terminal, output } = fakeTerminal();
  assert.equal(explainCommand(terminal, names, {}), 0);
  return output();
}

test("a name in any case is explained with its kind, meaning and remedy", () => {
  const text = explained("backoff");
  assert.match(text, /^BackOff {2}decision\n {2}The container keeps exiting/u);
  assert.match(text, /\n {2}→ See 'podwright logs --previous POD'/u);
});

test("several names are explained in order, and an ambiguous name with each of its meanings", () => {
  assert.match(explained("PodAdded", "PodRemoved"), /^PodAdded .*\n.*\n\nPodRemoved /u);
  assert.match(explained("ResizeError"), /^ResizeError {2}observation[^]*\n\nResizeError {2}error\n/u);
});

test("an extended resource has the meaning of any insufficient resource", () => {
  assert.match(explained("OutOfexample.com/gpu"), /^OutOfexample\.com\/gpu {2}decision\n {2}The pod was rejected/u);
});

test("JSON has the catalogue's entries", () => {
  const { terminal, output } = fakeTerminal();
  explainCommand(terminal, ["ErrImagePull"], { json: true });
  const [entry] = JSON.parse(output()) as { name: string; kind: string }[];
  assert.deepEqual([entry?.name, entry?.kind], ["ErrImagePull", "waiting reason"]);
});

test("the error for an unknown name has a similar one, or the page with all names", () => {
  const { terminal } = fakeTerminal();
  const remedyFor = (name: string): string | undefined => {
    try {
      explainCommand(terminal, [name], {});
    } catch (error) {
      assert.ok(error instanceof PodwrightError);
      return error.remedy;
    }
    return undefined;
  };
  assert.equal(remedyFor("CrashLoopBackof"), "did you mean CrashLoopBackOff?");
  assert.equal(remedyFor("zzzzzzzzzzzzzzzzzz"), "'podwright explain' lists all names");
});

test("known names are explained although another is unknown", () => {
  const { terminal, output } = fakeTerminal();
  assert.throws(() => explainCommand(terminal, ["PodAdded", "zzzzzzzzzzzzzzzzzz"], {}), PodwrightError);
  assert.match(output(), /^PodAdded /u);
});
