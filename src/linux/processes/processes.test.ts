import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { DeadlineError } from "../../base/deadline.ts";
import type { ProcessInfo } from "../../ports/processes.ts";
import { systemClock } from "./clock.ts";
import { needsRoot, testDirectory } from "./testing.ts";
import { systemProcesses } from "./processes.ts";

const options = { timeoutMs: 20_000 };

test("a program's output, exit code and signal are reported", async () => {
  const done = await systemProcesses.run("sh", ["-c", "echo out; echo err >&2; exit 3"], options);
  assert.deepEqual(done, { exitCode: 3, signal: undefined, stdout: "out\n", stderr: "err\n" });

  const killed = await systemProcesses.run("sh", ["-c", "kill -TERM $$"], options);
  assert.deepEqual(killed, { exitCode: undefined, signal: "SIGTERM", stdout: "", stderr: "" });
});

test("arguments bypass the shell, and an empty one is kept", async () => {
  const result = await systemProcesses.run("printf", ["%s|", "a b", "", "$(id)", ";"], options);
  assert.equal(result.stdout, "a b||$(id)|;|");
});

test("stdin is passed to the program, which need not read it", async () => {
  const text = "line\n".repeat(50_000);
  const read = await systemProcesses.run("wc", ["-l"], { ...options, stdin: text });
  assert.equal(read.stdout.trim(), "50000");
  const unread = await systemProcesses.run("true", [], { ...options, stdin: text });
  assert.equal(unread.exitCode, 0);
});

test("the given environment is added to podwright's own", async () => {
  const script = 'printf \'%s %s\' "$PODWRIGHT_TEST" "${PATH:+path}"';
  const result = await systemProcesses.run("sh", ["-c", script], { ...options, environment: { PODWRIGHT_TEST: "x" } });
  assert.equal(result.stdout, "x path");
});

test("a missing program rejects with its name", async () => {
  await assert.rejects(systemProcesses.run("/no/such/program", [], options), /cannot run \/no\/such\/program/);
});

test("output above 1 MiB is dropped while the program runs to its end", async () => {
  const result = await systemProcesses.run("sh", ["-c", "head -c 3000000 /dev/zero; exit 7"], options);
  assert.equal(result.stdout.length, 1024 * 1024);
  assert.equal(result.exitCode, 7);
});

test("a program that exceeds its time is killed with its children", async () => {
  // A duration of sleep that no other process uses.
  const seconds = `60.${process.pid}`;
  const running = systemProcesses.run("sh", ["-c", `sleep ${seconds} & wait`], { timeoutMs: 400 });
  const rejection = assert.rejects(running, DeadlineError);
  const sleepers = async (): Promise<ProcessInfo[]> =>
    (await systemProcesses.list()).filter((one) => one.arguments[1] === seconds);
  await becomesTrue(async () => (await sleepers()).length === 1);
  await rejection;
  await becomesTrue(async () => (await sleepers()).length === 0);
});

test("aborting kills the program and rejects with the reason", async () => {
  const controller = new AbortController();
  const reason = new Error("no longer wanted");
  const running = systemProcesses.run("sleep", ["60"], { ...options, signal: controller.signal });
  controller.abort(reason);
  await assert.rejects(running, reason);
  await assert.rejects(systemProcesses.run("true", [], { ...options, signal: controller.signal }), reason);
});

test("a background process that keeps the output pipe open does not delay the result", async () => {
  const before = performance.now();
  const result = await systemProcesses.run("sh", ["-c", "sleep 5 & echo started"], options);
  assert.equal(result.stdout, "started\n");
  assert.ok(performance.now() - before < 4_000);
});

test("the list has this process with its arguments, and kernel threads without", async () => {
  const all = await systemProcesses.list();
  const own = all.find((one) => one.pid === process.pid);
  assert.equal(own?.pid, systemProcesses.ownPid);
  assert.equal(own?.name, readFileSync("/proc/self/comm", "utf8").trim());
  assert.ok(own?.arguments.some((argument) => argument.includes("processes.test.ts")));
});

test("a process is alive until it is killed, and a zombie is not alive", async () => {
  assert.equal(systemProcesses.isAlive(process.pid), true);
  // The shell's child exits, and its parent, which has become `sleep`, never reaps it.
  const parent = spawn("sh", ["-c", "sleep 0.05 & echo $!; exec sleep 60"], { stdio: ["ignore", "pipe", "ignore"] });
  try {
    const [output]: unknown[] = await once(parent.stdout, "data");
    const zombie = Number(String(output));
    await becomesTrue(() => readFileSync(`/proc/${zombie}/stat`, "latin1").includes(") Z "));
    assert.equal(systemProcesses.isAlive(zombie), false);

    const pid = parent.pid ?? 0;
    assert.equal(systemProcesses.isAlive(pid), true);
    const exited = once(parent, "exit");
    assert.equal(systemProcesses.kill(pid, "SIGTERM"), true);
    await exited;
    assert.equal(systemProcesses.isAlive(pid), false);
    assert.equal(systemProcesses.kill(pid, "SIGTERM"), false);
  } finally {
    parent.kill("SIGKILL");
  }
});

test("numbers that mean process groups are rejected", () => {
  for (const pid of [0, -1, -process.pid, 1.5, Number.NaN]) {
    assert.throws(() => systemProcesses.kill(pid, "SIGTERM"), RangeError);
    assert.throws(() => systemProcesses.isAlive(pid), RangeError);
  }
});

async function becomesTrue(condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt++) {
    if (await condition()) return;
    await systemClock.sleep("a condition", 10);
  }
  assert.fail("the condition did not become true");
}

test(
  "a process with another root directory is told from those that share this one's",
  { skip: needsRoot() },
  async () => {
    using directory = testDirectory();
    const root = directory.path;
    const setUp = `mount -t tmpfs podwright-test ${root} && cp "$(command -v busybox)" ${root} && exec chroot ${root} /busybox sleep 60`;
    const elsewhere = spawn("unshare", ["--mount", "sh", "-c", setUp]);
    const here = spawn("sleep", ["60"]);
    try {
      const [away, near] = [elsewhere.pid, here.pid];
      assert.ok(away !== undefined && near !== undefined);
      await becomesTrue(async () => !systemProcesses.sharesRoot(away));
      assert.equal(systemProcesses.isAlive(away), true);
      assert.equal(systemProcesses.sharesRoot(near), true);
      assert.equal(systemProcesses.sharesRoot(process.pid), true);
    } finally {
      elsewhere.kill("SIGKILL");
      here.kill("SIGKILL");
    }
  },
);
