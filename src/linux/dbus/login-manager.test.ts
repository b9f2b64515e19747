import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { needsBus, needsSender, SystemBus } from "../../../test/support/system-bus.ts";
import { systemClock } from "../processes/clock.ts";
import { needsRoot, testDirectory } from "../processes/testing.ts";
import { systemLoginManager } from "./login-manager.ts";

const skip = needsBus();
const noProgram = spawnSync("systemd-inhibit", ["--version"]).status !== 0 && "needs systemd-inhibit";
const none = new AbortController().signal;
const nobody = 65_534;

async function firstOf<T>(values: AsyncIterable<T>): Promise<T | undefined> {
  for await (const value of values) return value;
  return undefined;
}

async function until(what: string, holds: () => boolean): Promise<void> {
  for (let tries = 0; !holds(); tries++) {
    assert.ok(tries < 500, what);
    await systemClock.sleep(what, 10);
  }
}

/** Processes that this thread has started. */
function children(): number[] {
  const text = readdirSync("/proc/self/task")
    .map((task) => readFileSync(`/proc/self/task/${task}/children`, "utf8"))
    .join("");
  return text
    .split(" ")
    .filter((word) => word !== "")
    .map(Number);
}

function noFfi(name: string): unknown {
  throw new Error(`No such built-in module: ${name}`);
}

test(
  "without node:ffi a child process holds the lock, and all else works as with it",
  { skip: skip || noProgram },
  async () => {
    using directory = testDirectory();
    await using bus = await SystemBus.start(directory.path);
    const old = systemLoginManager(systemClock, bus.address, noFfi);
    const session = await old.connect(none);
    assert.equal(await session.inhibitDelayMaxMs(none), 60_000);
    const lock = await session.delayShutdown("kubelet", "Kubelet needs time", none);
    assert.deepEqual([bus.inhibitors, bus.locks], [[["shutdown", "kubelet", "Kubelet needs time", "delay"]], 1]);
    bus.announce(true);
    await systemClock.sleep("the signal to come", 50);
    assert.equal(await session.isPreparingForShutdown(none), true);
    await assert.rejects(session.delayShutdown("kubelet", "pods", none), /systemd-inhibit: .*already running/u);
    const told: boolean[] = [];
    setTimeout(() => bus.announce(false), 50);
    for await (const begins of session.shutdowns(none)) if (told.push(begins) === 2) break;
    assert.deepEqual(told, [true, false]);
    session[Symbol.dispose]();
    assert.equal(bus.locks, 1);
    lock[Symbol.dispose]();
    await until("the lock to be gone", () => bus.locks === 0);
    await assert.rejects(
      systemLoginManager(systemClock, "unix:path=/nowhere/bus", noFfi).connect(none),
      /no server at \/nowhere\/bus/u,
    );
  },
);

test("the lock of a child process ends with this process, however that ends", { skip: skip || noProgram }, async () => {
  using directory = testDirectory();
  await using bus = await SystemBus.start(directory.path);
  const script = `
    import { systemLoginManager } from ${JSON.stringify(import.meta.resolve("./login-manager.ts"))};
    import { systemClock } from ${JSON.stringify(import.meta.resolve("../processes/clock.ts"))};
    const none = new AbortController().signal;
    const session = await systemLoginManager(systemClock, ${JSON.stringify(bus.address)}, () => undefined).connect(none);
    await session.delayShutdown("kubelet", "pods", none);
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: "inherit" });
  await until("the lock to be held", () => bus.locks === 1);
  child.kill("SIGKILL");
  await until("the lock to be gone", () => bus.locks === 0);
});

test("a child process that loses the lock ends the session's signals", { skip: skip || noProgram }, async () => {
  using directory = testDirectory();
  await using bus = await SystemBus.start(directory.path);
  using session = await systemLoginManager(systemClock, bus.address, noFfi).connect(none);
  const signals = (): Promise<boolean | undefined> => firstOf(session.shutdowns(AbortSignal.timeout(10_000)));
  const before = children();
  using _lock = await session.delayShutdown("kubelet", "pods", none);
  const [child = NaN, ...more] = children().filter((pid) => !before.includes(pid));
  assert.deepEqual(more, []);
  const beganMs = performance.now();
  setTimeout(() => process.kill(child, "SIGKILL"), 20);
  assert.equal(await signals(), undefined);
  assert.ok(performance.now() - beganMs < 9000, "they end because of the child");
});

test("reads logind's delay and shutdown state, and makes it reload its configuration", { skip }, async () => {
  using directory = testDirectory();
  await using bus = await SystemBus.start(directory.path);
  using session = await systemLoginManager(systemClock, bus.address).connect(none);
  bus.delayMaxMs = 45_000;
  assert.equal(await session.inhibitDelayMaxMs(none), 45_000);
  assert.equal(await session.isPreparingForShutdown(none), false);
  await session.reloadConfiguration(none);
  assert.deepEqual(bus.kills, [["systemd-logind.service", "all", 1]]);
});

test("a lock is held until it is released, even after the connection has closed", { skip }, async () => {
  using directory = testDirectory();
  await using bus = await SystemBus.start(directory.path);
  const session = await systemLoginManager(systemClock, bus.address).connect(none);
  const lock = await session.delayShutdown("kubelet", "pods", none);
  assert.deepEqual(bus.inhibitors, [["shutdown", "kubelet", "pods", "delay"]]);
  session[Symbol.dispose]();
  await systemClock.sleep("the connection to end", 50);
  assert.equal(bus.locks, 1);
  lock[Symbol.dispose]();
  lock[Symbol.dispose]();
  await until("the lock to be gone", () => bus.locks === 0);
});

test("during a shutdown logind grants no lock; its own message is reported", { skip }, async () => {
  using directory = testDirectory();
  await using bus = await SystemBus.start(directory.path);
  bus.isPreparing = true;
  using session = await systemLoginManager(systemClock, bus.address).connect(none);
  assert.equal(await session.isPreparingForShutdown(none), true);
  const refused = /Manager.Inhibit: org.freedesktop.login1.OperationInProgress: The operation is already running/u;
  await assert.rejects(session.delayShutdown("kubelet", "pods", none), refused);
});

test("a shutdown and its cancellation are reported, also when received between answers", { skip }, async () => {
  using directory = testDirectory();
  await using bus = await SystemBus.start(directory.path);
  using session = await systemLoginManager(systemClock, bus.address).connect(none);
  bus.announce(true);
  await systemClock.sleep("the signal to come", 50);
  assert.equal(await session.isPreparingForShutdown(none), true);
  const told: boolean[] = [];
  setTimeout(() => bus.announce(false), 50);
  for await (const begins of session.shutdowns(none)) if (told.push(begins) === 2) break;
  assert.deepEqual(told, [true, false]);
});

/** What is told of a shutdown that a user announces, and that logind cancels. */
async function toldOf(user: number, policy?: string): Promise<boolean[]> {
  using directory = testDirectory();
  chmodSync(directory.path, 0o755);
  await using bus = await SystemBus.start(directory.path, policy);
  using session = await systemLoginManager(systemClock, bus.address).connect(none);
  bus.forge(true, user);
  assert.equal(await session.isPreparingForShutdown(none), false, "by now the bus has passed the signal on");
  bus.announce(false);
  const told: boolean[] = [];
  for await (const begins of session.shutdowns(none)) {
    told.push(begins);
    if (!begins) break;
  }
  return told;
}

test(
  "a shutdown that another program announces counts, although logind knows nothing of it",
  { skip: needsSender() || needsRoot() },
  async () => {
    assert.deepEqual(await toldOf(0), [true, false]);
    assert.deepEqual(await toldOf(nobody), [true, false]);
  },
);

test(
  "the bus policy in docs/security.md lets only root announce a shutdown",
  { skip: needsSender() || needsRoot() },
  async () => {
    const page = readFileSync(new URL("../../../docs/security.md", import.meta.url), "utf8");
    const [policy] = /<busconfig>.*<\/busconfig>/su.exec(page) ?? [];
    assert.deepEqual(await toldOf(nobody, policy), [false]);
    assert.deepEqual(await toldOf(0, policy), [true, false]);
  },
);

test("a change is told once, however often it is announced", { skip }, async () => {
  using directory = testDirectory();
  await using bus = await SystemBus.start(directory.path);
  using session = await systemLoginManager(systemClock, bus.address).connect(none);
  const told: boolean[] = [];
  for (const [after, begins] of [true, true, false, false, true].entries()) {
    setTimeout(() => bus.announce(begins), 50 * (after + 1));
  }
  for await (const begins of session.shutdowns(none)) if (told.push(begins) === 3) break;
  assert.deepEqual(told, [true, false, true]);
});

test("signals end with the bus, or without listeners", { skip }, async () => {
  using directory = testDirectory();
  const bus = await SystemBus.start(directory.path);
  using session = await systemLoginManager(systemClock, bus.address).connect(none);
  setTimeout(() => void bus[Symbol.asyncDispose](), 20);
  assert.equal(await firstOf(session.shutdowns(none)), undefined);
  await using other = await SystemBus.start(directory.path);
  using second = await systemLoginManager(systemClock, other.address).connect(none);
  assert.equal(await firstOf(second.shutdowns(AbortSignal.timeout(20))), undefined);
});

test("a missing bus or an address that is not a socket is an error", { skip }, async () => {
  await assert.rejects(
    systemLoginManager(systemClock, "unix:path=/nowhere/bus").connect(none),
    /no server at \/nowhere\/bus/u,
  );
  await assert.rejects(systemLoginManager(systemClock, "tcp:host=a").connect(none), /tcp:host=a is not a unix:path=/u);
});
