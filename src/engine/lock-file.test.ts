import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import type { Locks } from "../ports/locks.ts";
import { MemoryFiles } from "../sim/files.ts";
import { silentLog } from "../sim/machine.ts";
import { hasWaiter, lockFileContention, takeLockFile } from "./lock-file.ts";

const table = `1: FLOCK  ADVISORY  WRITE 100 fe:00:4242 0 EOF
1: -> FLOCK  ADVISORY  WRITE 101 fe:00:4242 0 EOF
2: POSIX  ADVISORY  WRITE 102 fe:00:77 0 EOF
2: -> POSIX  ADVISORY  WRITE 103 fe:00:77 0 EOF
3: FLOCK  ADVISORY  WRITE 104 fe:00:88 0 EOF
`;

test("/proc/locks shows who waits for a lock of the file", () => {
  const device = 0xfe00;
  assert.equal(hasWaiter(table, { device, inode: 4242 }), true);
  assert.equal(hasWaiter(table, { device: 0xfe01, inode: 4242 }), false, "a file of another file system");
  assert.equal(hasWaiter(table, { device, inode: 88 }), false, "only held");
  assert.equal(hasWaiter(table, { device, inode: 77 }), false, "another kind of lock");
  assert.equal(hasWaiter("", { device, inode: 4242 }), false);
  const far = "9: -> FLOCK ADVISORY WRITE 1 103:12345:5 0 EOF";
  assert.equal(hasWaiter(far, { device: 0x12310345, inode: 5 }), true, "minor numbers above 255");
});

test("the start waits for the lock file", async () => {
  const clock = new ManualClock();
  let holders = 2;
  const locks: Locks = {
    tryOwnLock: () => assert.fail("Go kubelets lock the file, too"),
    tryLock: async () => (holders-- > 0 ? undefined : { [Symbol.dispose]: () => {} }),
    holder: async () => undefined,
  };
  const { signal } = new AbortController();
  const taking = takeLockFile({ clock, locks, log: silentLog }, "/run/kubelet.lock", signal);
  await clock.advance(2000);
  assert.ok(await taking);
});

test("contention ends the holder of the lock, and so does its signal", async () => {
  const clock = new ManualClock();
  const files = new MemoryFiles(clock);
  await files.makeDirectory("/proc", 0o755);
  await files.write("/lock", "", 0o600);
  await files.write("/proc/locks", "", 0o444);
  const { inode, device } = (await files.stat("/lock")) ?? { inode: 0, device: 0 };
  const told = new AbortController();
  const first = lockFileContention({ clock, files, log: silentLog }, "/lock", told.signal);
  const second = lockFileContention({ clock, files, log: silentLog }, "/proc", told.signal);
  await clock.advance(3000);
  assert.equal(first.aborted, false);
  await files.write(
    "/proc/locks",
    table.replaceAll("fe:00:4242", `00:${device.toString(16).padStart(2, "0")}:${inode}`),
    0o444,
  );
  await clock.advance(1000);
  assert.match(String(first.reason), /another process waits for \/lock/);
  assert.equal(second.aborted, false);
  told.abort(new Error("received SIGTERM"));
  await clock.advance(0);
  assert.match(String(second.reason), /received/);
});
