import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { deviceSample, mountedDisks, parseDiskStats } from "./disk-counters.ts";

const recorded = readFileSync(new URL("../../test/fixtures/kernel/diskstats.txt", import.meta.url), "utf8");

function line(number: string, name: string, reads = 1): string {
  return `${number.replace(":", " ")} ${name} ${reads} 2 3 4 5 6 7 8 9 10 11\n`;
}

test("a recorded /proc/diskstats is parsed, including the fields of newer kernels", () => {
  const disks = parseDiskStats(recorded);
  assert.equal(disks.length, recorded.trim().split("\n").length);
  const disk = disks.find(({ name }) => name === "vda");
  const fields = /vda (.*)/u.exec(recorded)?.[1]?.split(" ").map(Number) ?? [];
  assert.ok(disk !== undefined && fields.length > 11);
  assert.deepEqual(Object.values(disk).slice(0, 3), [254, 0, "vda"]);
  assert.deepEqual(Object.values(disk).slice(3), fields.slice(0, 11));
  const bytes = { readBytes: disk.sectorsRead * 512, writtenBytes: disk.sectorsWritten * 512 };
  assert.deepEqual(deviceSample(disk), {
    ...{ major: 254, minor: 0 },
    ...bytes,
    ...{ reads: disk.reads, writes: disk.writes },
  });
});

test("short and malformed lines are skipped", () => {
  for (const text of ["", "8 1 sda1 1 2 3 4\n", "a b c 1 2 3 4 5 6 7 8 9 10 11\n", line("8:0", "sda x")]) {
    assert.deepEqual(parseDiskStats(text), [], text);
  }
});

test("a mounted disk is matched by name, else by number, and reported once", () => {
  const disks = parseDiskStats(
    line("8:0", "sda") + line("8:1", "sda1", 40) + line("253:0", "dm-0") + line("7:0", "loop0"),
  );
  const mounted = [
    // btrfs has its own device number.
    { source: "/dev/sda1", number: "0:29" },
    { source: "/dev/mapper/vg-root", number: "253:0" },
    { source: "/dev/dm-0", number: "253:0" },
    { source: "/dev/fuse", number: "0:41" },
  ];
  assert.deepEqual(
    mountedDisks(disks, mounted).map(({ name, reads }) => [name, reads]),
    [
      ["sda1", 40],
      ["mapper/vg-root", 1],
    ],
  );
});
