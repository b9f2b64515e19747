import assert from "node:assert/strict";
import { test } from "node:test";
import { FileError } from "../ports/files.ts";
import { silentLog } from "../sim/machine.ts";
import { ensureKernelSettings, kernelSettings } from "./kernel-settings.ts";

const writes = { isProtected: false, toleratesUserNamespace: false };
const checks = { ...writes, isProtected: true };

function kernel(changed: Readonly<Record<string, number>> = {}) {
  const values = new Map(
    Object.entries({ ...kernelSettings, ...changed }).map(([name, value]) => [`/proc/sys/${name}`, `${value}\n`]),
  );
  const written: string[] = [];
  const files = {
    read: async (path: string) => new TextEncoder().encode(values.get(path)),
    write: async (path: string, data: string | Uint8Array) => void written.push(`${path} ${String(data)}`),
  };
  return { files, log: silentLog, written };
}

test("only settings that differ are written", async () => {
  const machine = kernel({ "kernel/panic": 0, "vm/overcommit_memory": 0 });
  await ensureKernelSettings(machine, writes);
  assert.deepEqual(machine.written, ["/proc/sys/vm/overcommit_memory 1", "/proc/sys/kernel/panic 10"]);
  const right = kernel();
  await ensureKernelSettings(right, writes);
  assert.deepEqual(right.written, []);
});

test("protected settings that differ prevent the start, all in one error in upstream's words, and nothing is written", async () => {
  const machine = kernel({ "kernel/panic": 0, "vm/panic_on_oom": 1 });
  await assert.rejects(ensureKernelSettings(machine, checks), {
    message:
      "[invalid kernel flag: vm/panic_on_oom, expected value: 0, actual value: 1, " +
      "invalid kernel flag: kernel/panic, expected value: 10, actual value: 0]",
    remedy: "set them with sysctl, or set protectKernelDefaults to false",
  });
  assert.deepEqual(machine.written, []);
  await ensureKernelSettings(kernel(), checks);
});

async function refuse(path: string): Promise<void> {
  throw new FileError("EROFS", path, "EROFS: read-only file system");
}

test("in a user namespace it is kept, with KubeletInUserNamespace; protected settings stay an error", async () => {
  const rootless = { ...writes, toleratesUserNamespace: true };
  for (const [idMap, isKept] of [
    ["         0       1000          1\n", true],
    ["         0          0 4294967295\n", false],
  ] as const) {
    const machine = kernel({ "kernel/panic": 0, "vm/panic_on_oom": 1 });
    const read = async (path: string) =>
      path === "/proc/self/uid_map" ? new TextEncoder().encode(idMap) : await machine.files.read(path);
    const told: string[] = [];
    const log = { ...silentLog, info: (text: string) => void told.push(text) };
    const deps = { log, files: { read, write: refuse } };
    if (!isKept) {
      await assert.rejects(ensureKernelSettings(deps, rootless), /EROFS/u);
      continue;
    }
    await ensureKernelSettings(deps, rootless);
    assert.deepEqual(told, Array(2).fill("kept a kernel setting that a user namespace cannot change"));
    await assert.rejects(ensureKernelSettings(deps, writes), /EROFS/u);
    await assert.rejects(ensureKernelSettings(deps, { ...rootless, isProtected: true }), /invalid kernel flag/u);
  }
});

test("a setting that cannot be written prevents the start", async () => {
  const machine = kernel({ "kernel/panic": 0 });
  await assert.rejects(ensureKernelSettings({ ...machine, files: { ...machine.files, write: refuse } }, writes), {
    message: "EROFS: read-only file system",
    remedy: "set them with sysctl before the kubelet starts",
  });
});
