import assert from "node:assert/strict";
import { test } from "node:test";
import type { MountPoint, Mounts } from "../ports/mounts.ts";
import { MemoryVolumes } from "./memory-volumes.ts";

/** @param problem of a mount with these options */
function scene(problem: (options: readonly string[]) => string | undefined) {
  const tried: string[] = [];
  const mounts: Pick<Mounts, "mount"> = {
    async mount({ options }: MountPoint) {
      tried.push(options.join());
      const words = problem(options);
      if (words !== undefined) throw new Error(words);
    },
  };
  return { tried, volumes: new MemoryVolumes(mounts) };
}

test("a memory volume's content stays off the disk; without a limit it has no size", async () => {
  const { tried, volumes } = scene(() => undefined);
  assert.deepEqual(await volumes.mount("/a", 4096n), { mayBeSwapped: false });
  assert.deepEqual(await volumes.mount("/b", 0n), { mayBeSwapped: false });
  assert.deepEqual(tried, ["size=4096,noswap", "noswap"]);
});

for (const words of [
  "cannot mount tmpfs on /a: mount: /a: wrong fs type, bad option, bad superblock on tmpfs",
  "cannot mount tmpfs on /a: mount: /a: fsconfig system call failed: tmpfs: Unknown parameter 'noswap'.",
  "cannot mount tmpfs on /a: fsconfig() failed: tmpfs: Turning off swap in unprivileged tmpfs mounts unsupported.",
]) {
  test(`a kernel without noswap is tried with it once: ${words.slice(26)}`, async () => {
    const { tried, volumes } = scene((options) => (options.includes("noswap") ? words : undefined));
    assert.deepEqual(await volumes.mount("/a", 1n), { mayBeSwapped: true });
    assert.deepEqual(await volumes.mount("/b", 2n), { mayBeSwapped: true });
    assert.deepEqual(tried, ["size=1,noswap", "size=1", "size=2"]);
  });
}

test("another problem does not disable noswap", async () => {
  let failures = 1;
  const { tried, volumes } = scene(() => (failures-- > 0 ? "cannot mount tmpfs on /a: no memory" : undefined));
  assert.deepEqual(await volumes.mount("/a", 1n), { mayBeSwapped: true });
  assert.deepEqual(await volumes.mount("/b", 2n), { mayBeSwapped: false });
  assert.deepEqual(tried, ["size=1,noswap", "size=1", "size=2,noswap"]);
});

test("an error without noswap is thrown, and noswap is tried again", async () => {
  const { tried, volumes } = scene(() => "cannot mount tmpfs on /a: wrong fs type, bad option");
  await assert.rejects(volumes.mount("/a", 1n), /bad option/);
  await assert.rejects(volumes.mount("/a", 1n), /bad option/);
  assert.deepEqual(tried, ["size=1,noswap", "size=1", "size=1,noswap", "size=1"]);
});
