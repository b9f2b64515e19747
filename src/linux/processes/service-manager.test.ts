import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { CommandOptions, Processes } from "../../ports/processes.ts";
import { DatagramSocket } from "../../../test/support/datagram-socket.ts";
import { addressOf, openCLibrary } from "./c-library.ts";
import { serviceManager } from "./service-manager.ts";
import { systemProcesses } from "./processes.ts";

const abstract = `@podwright-notify-${process.pid}`;

for (const [kind, name] of [
  ["a path", join(tmpdir(), `podwright-notify-${process.pid}`)],
  ["an abstract name", abstract],
] as const) {
  test(`assignments arrive as one message at a socket with ${kind}`, async () => {
    using socket = new DatagramSocket(name);
    const manager = serviceManager({ NOTIFY_SOCKET: name }, systemProcesses);
    await manager?.notify(["READY=1", "STATUS=2 pods, 1 ready"]);
    await manager?.notify(["WATCHDOG=1"]);
    assert.deepEqual(socket.read(), ["READY=1\nSTATUS=2 pods, 1 ready", "WATCHDOG=1"]);
  });
}

test("a socket without a listener, or with an invalid name, is an error", async () => {
  for (const name of ["@podwright-nobody", "/nonexistent/notify", `/${"x".repeat(200)}`]) {
    const manager = serviceManager({ NOTIFY_SOCKET: name }, systemProcesses);
    await assert.rejects(async () => manager?.notify(["READY=1"]), /does not accept it|not the name of a Unix socket/u);
  }
});

test("the variables are removed, so that no child process notifies in place of this one", () => {
  const environment = { NOTIFY_SOCKET: abstract, WATCHDOG_USEC: "3000000", WATCHDOG_PID: String(process.pid), A: "b" };
  assert.equal(serviceManager(environment, systemProcesses)?.watchdogMs, 3000);
  assert.deepEqual(environment, { A: "b" });
  assert.equal(serviceManager(environment, systemProcesses), undefined);
});

test("the watchdog must be for this process, with a sound period", () => {
  const watchdog = (period: string, pid?: string): number | undefined =>
    serviceManager({ NOTIFY_SOCKET: abstract, WATCHDOG_USEC: period, WATCHDOG_PID: pid }, systemProcesses)?.watchdogMs;
  assert.equal(watchdog("30000000"), 30_000);
  assert.equal(watchdog("30000000", String(process.pid + 1)), undefined);
  assert.equal(watchdog(""), undefined);
  for (const bad of ["0", "-1", "soon", "1.5"]) assert.throws(() => watchdog(bad), /WATCHDOG_USEC is not a positive/u);
  assert.throws(() => watchdog("3000000", "me"), /WATCHDOG_PID is not a positive/u);
  assert.throws(() => watchdog("1000000"), /timeout is too small: 1000 ms/u);
});

test("the monotonic time is the kernel's CLOCK_MONOTONIC, whenever this process began", () => {
  const manager = serviceManager({ NOTIFY_SOCKET: abstract }, systemProcesses);
  assert.ok(manager !== undefined);
  // <time.h>: CLOCK_MONOTONIC is 1, a timespec two numbers of 64 bits.
  const time = Buffer.alloc(16);
  const before = manager.monotonicMicroseconds();
  assert.equal(openCLibrary()("clock_gettime", ["int32", "pointer"], "int32")(1, addressOf(time)), 0);
  const kernel = time.readBigInt64LE(0) * 1_000_000n + time.readBigInt64LE(8) / 1000n;
  assert.ok(before <= kernel && kernel <= manager.monotonicMicroseconds(), `${before}, the kernel has ${kernel}`);
});

test("without node:ffi systemd-notify sends, in the name of this process", async () => {
  const calls: [string, readonly string[], CommandOptions][] = [];
  let exitCode = 0;
  const processes: Processes = {
    ...systemProcesses,
    ownPid: 42,
    run: async (...call) => {
      calls.push(call);
      return { exitCode, signal: undefined, stdout: "", stderr: exitCode === 0 ? "" : "No such socket\n" };
    },
  };
  const manager = serviceManager({ NOTIFY_SOCKET: "/run/notify" }, processes, () => undefined);
  await manager?.notify(["READY=1", "STATUS=ready"]);
  const [program, words, options] = calls[0] ?? [];
  assert.equal(program, "systemd-notify");
  assert.deepEqual(words, ["--pid=42", "READY=1", "STATUS=ready"]);
  assert.deepEqual(options?.environment, { NOTIFY_SOCKET: "/run/notify" });
  exitCode = 1;
  await assert.rejects(async () => manager?.notify(["WATCHDOG=1"]), /systemd-notify: No such socket/u);
});
