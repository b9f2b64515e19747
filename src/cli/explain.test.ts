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

test("a name is explained with its kind, its meaning and its remedy, whatever its case", () => {
  const text = explained("backoff");
  assert.match(text, /^BackOff {2}decision\n {2}The container keeps exiting/u);
  assert.match(text, /\n {2}→ See 'podwright logs --previous POD'/u);
});

test("several names are explained one after the other, and a name that two things have for both", () => {
  assert.match(explained("PodAdded", "PodRemoved"), /^PodAdded .*\n.*\n\nPodRemoved /u);
  assert.match(explained("ResizeError"), /^ResizeError {2}observation[^]*\n\nResizeError {2}error\n/u);
});

test("a resource of the cluster's own has the meaning of any that is short", () => {
  assert.match(explained("OutOfexample.com/gpu"), /^OutOfexample\.com\/gpu {2}decision\n {2}The pod was rejected/u);
});

test("JSON has the entries as they are", () => {
  const { terminal, output } = fakeTerminal();
  explainCommand(terminal, ["ErrImagePull"], { json: true });
  const [entry] = JSON.parse(output()) as { name: string; kind: string }[];
  assert.deepEqual([entry?.name, entry?.kind], ["ErrImagePull", "waiting reason"]);
});

test("an unknown name is an error with the nearest one, or with where all are", () => {
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
  assert.equal(remedyFor("zzzzzzzzzzzzzzzzzz"), "docs/messages.md lists all names");
});

test("names that are known are explained though another is unknown", () => {
  const { terminal, output } = fakeTerminal();
  assert.throws(() => explainCommand(terminal, ["PodAdded", "zzzzzzzzzzzzzzzzzz"], {}), PodwrightError);
  assert.match(output(), /^PodAdded /u);
});
