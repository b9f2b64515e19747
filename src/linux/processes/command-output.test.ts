import assert from "node:assert/strict";
import { test } from "node:test";
import { systemCommandOutput } from "./command-output.ts";
import { systemProcesses } from "./processes.ts";

const { signal } = new AbortController();

async function output(program: string, ...arguments_: readonly string[]): Promise<string> {
  let text = "";
  for await (const chunk of systemCommandOutput(program, arguments_, { timeoutMs: 10_000, signal })) {
    text += Buffer.from(chunk).toString();
  }
  return text;
}

test("a program's output and errors are passed on, whatever its exit code", async () => {
  assert.match(await output("sh", "-c", "echo one; sleep 0.1; echo two >&2; exit 3"), /^one\ntwo\n$/);
});

test("a missing program, and one that takes too long, are errors", async () => {
  await assert.rejects(output("/no/such/program"), /cannot run \/no\/such\/program/);
  const slow = systemCommandOutput("sleep", ["60"], { timeoutMs: 100, signal });
  await assert.rejects(async () => {
    for await (const _chunk of slow);
  }, /timed out after 0.1 s/);
});

test("leaving the loop kills the program, and a slow reader slows it down", async () => {
  const options = { timeoutMs: 10_000, signal };
  let pid = 0;
  for await (const chunk of systemCommandOutput("sh", ["-c", "echo $$; exec yes"], options)) {
    pid = Number.parseInt(Buffer.from(chunk).toString(), 10);
    break;
  }
  const deadline = Date.now() + 5000;
  while (systemProcesses.isAlive(pid) && Date.now() < deadline) await new Promise((done) => setTimeout(done, 20));
  assert.equal(systemProcesses.isAlive(pid), false);
});
