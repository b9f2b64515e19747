import assert from "node:assert/strict";
import { test } from "node:test";
import { FileError } from "../ports/files.ts";
import { silentLog } from "../sim/machine.ts";
import { ensureKernelSettings, kernelSettings } from "./kernel-settings.ts";

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
  await ensureKernelSettings(machine, false);
  assert.deepEqual(machine.written, ["/proc/sys/vm/overcommit_memory 1", "/proc/sys/kernel/panic 10"]);
  const right = kernel();
  await ensureKernelSettings(right, false);
  assert.deepEqual(right.written, []);
});

test("protected settings that differ prevent the start, all in one error in upstream's words, and nothing is written", async () => {
  const machine = kernel({ "kernel/panic": 0, "vm/panic_on_oom": 1 });
  await assert.rejects(ensureKernelSettings(machine, true), {
    message:
      "[invalid kernel flag: vm/panic_on_oom, expected value: 0, actual value: 1, " +
      "invalid kernel flag: kernel/panic, expected value: 10, actual value: 0]",
    remedy: "set them with sysctl, or set protectKernelDefaults to false",
  });
  assert.deepEqual(machine.written, []);
  await ensureKernelSettings(kernel(), true);
});

test("a setting that cannot be written prevents the start", async () => {
  const machine = kernel({ "kernel/panic": 0 });
  const refuse = async (path: string): Promise<void> => {
    throw new FileError("EROFS", path, "EROFS: read-only file system");
  };
  await assert.rejects(ensureKernelSettings({ ...machine, files: { ...machine.files, write: refuse } }, false), {
    message: "EROFS: read-only file system",
    remedy: "set them with sysctl before the kubelet starts",
  });
});
