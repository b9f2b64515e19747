import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";

const root = dirname(import.meta.dirname);
/** How many times as long as usual the virtual machine needs without KVM, and the most that a part may take there. */
const [slowness, mostMinutes] = [11, 40];

const lines = readFileSync(join(root, "test/vm/parts.txt"), "utf8")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"));
const rows = lines
  .map((line) => line.split(" "))
  .filter(([part, what]) => part !== "-" && what !== "options")
  .map(([part = "", seconds, file = ""]) => ({ part, seconds: Number(seconds), file }));
const leftOut = lines
  .filter((line) => line.startsWith("- "))
  .map((line) => {
    const [, file = "", reason = ""] = /^- (\S+) (.+)$/u.exec(line) ?? [];
    return { file, reason };
  });

/** Runs test/vm/run.sh with arguments with which it starts no machine. */
function runScript(...words: readonly string[]): { status: number | null; stdout: string; stderr: string } {
  // A mistake here must not make a machine: debootstrap is in /usr/sbin.
  const env = { PATH: "/usr/bin:/bin" };
  return spawnSync("sh", ["test/vm/run.sh", ...words], { cwd: root, encoding: "utf8", env });
}

describe("the parts of the virtual machine's suite", () => {
  it("hold every test of a whole node once, or a reason why it cannot run there", () => {
    const given = [...rows.map(({ file }) => file), ...leftOut.map(({ file }) => file)];
    const files = globSync(["test/integration/*.test.ts", "test/vm/**/*.test.ts"], { cwd: root });
    assert.deepEqual(given.toSorted(), files.toSorted());
    for (const { file, reason } of leftOut) assert.match(reason, /^needs /u, file);
  });
  it("take at most 40 minutes each without KVM", () => {
    for (const [part, files] of Map.groupBy(rows, (row) => row.part)) {
      const minutes = (files.reduce((sum, { seconds }) => sum + seconds, 0) * slowness) / 60;
      assert.ok(minutes > 0 && minutes <= mostMinutes, `${part} takes ${minutes} minutes`);
    }
  });
  it("are printed with what to expect, and with what cannot run there", () => {
    const { stdout, status } = runScript("--list");
    assert.equal(status, 0);
    const listed = stdout.trim().split("\n");
    const names = listed.filter((line) => !line.startsWith("not here: ")).map((line) => line.split(" ")[0]);
    assert.deepEqual(names, [...new Set(rows.map(({ part }) => part))]);
    for (const { file, reason } of leftOut) assert.ok(listed.includes(`not here: ${file}: ${reason}`), stdout);
    assert.match(stdout, /^shape +about +1 minutes, 1 file --cpus 4 --numa 2 /mu);
  });
});

describe("the arguments of the virtual machine", () => {
  const rejected: readonly (readonly [words: string, message: string])[] = [
    ["--cpus 0", "--cpus must be at least 1"],
    ["--cpus two", "--cpus must be a whole number, not 'two'"],
    ["--cpus 65", "--cpus must be at most 64"],
    ["--cpus 3 --numa 2", "--cpus 3 cannot be divided evenly among --numa 2 nodes"],
    ["--cpus 8 --numa 8", "--memory must be at least 512M for each of --numa 8 nodes"],
    ["--memory 3", "--memory must be a size such as 512M or 4G, not '3'"],
    ["--memory 0G", "--memory must be a size such as 512M or 4G, not '0G'"],
    ["--memory 512M", "--memory must be at least 1024M"],
    ["--hugepages -1", "--hugepages must be a whole number, not '-1'"],
    ["--hugepages 9999", "--hugepages 9999 are more than half of --memory 3072M"],
    ["--swap 1M", "--swap must be at least 16M"],
    ["--disk 1T", "--disk must be a size such as 512M or 4G, not '1T'"],
    ["--disk", "--disk needs a value"],
    ["--cgroup-driver v2", "--cgroup-driver must be cgroupfs or systemd, not 'v2'"],
    ["--name a/b", "--name cannot be 'a/b'"],
    ["--network 2", "unknown option --network"],
    ["cgroup2", "no part (see --list) and no test file is called cgroup2"],
    ["cgroups test/vm/resize", "test/vm/resize is not a part (see --list), and parts cannot be mixed with paths"],
  ];
  for (const [words, message] of rejected) {
    it(`are rejected before it starts: ${words}`, () => {
      const { status, stderr } = runScript(...words.split(" "));
      assert.deepEqual([status, stderr], [2, `vm: ${message}\n`]);
    });
  }
});

describe("a failed run in the virtual machine", () => {
  /** What it says of this output. */
  function reportOf(output: string): string[] {
    const directory = mkdtempSync(join(tmpdir(), "podwright-vm-"));
    const path = join(directory, "output.log");
    writeFileSync(path, output);
    const script = `say() { printf '%s\\n' "$*"; }
. test/vm/options.sh
read_options --cpus 4 --name cgroups
output=$1 console=console.log limit_minutes=45
shift
report_failure "$@"`;
    const words = ["-c", script, "sh", path, "test/vm/a.test.ts", "test/vm/b.test.ts"];
    const { stdout, stderr } = spawnSync("sh", words, { cwd: root, encoding: "utf8" });
    rmSync(directory, { recursive: true });
    assert.equal(stderr, "");
    return stdout.trimEnd().replaceAll(path, "output.log").split("\n");
  }

  it("names the tests that failed, its logs, and the command that repeats their files in such a machine", () => {
    const ran = `run  test/vm/a.test.ts
ok   test/vm/a.test.ts  1 test, 1.0 s
run  test/vm/b.test.ts
  passed after 1.0 s: outer > other
  failed after 1.0 s: outer > inner
FAIL test/vm/b.test.ts  2 tests, 2.0 s
  failed: outer > inner
    at test/vm/b.test.ts:3
    Error: boom
1 passed, 1 failed
`;
    assert.deepEqual(reportOf(ran), [
      "failed: test/vm/b.test.ts: outer > inner",
      "its output is in output.log, what the machine itself said in console.log",
      "again: npm run test:vm -- --cpus 4 test/vm/b.test.ts",
    ]);
  });
  it("names the file that was running when the machine ended, and what had failed in it", () => {
    const ran = `run  test/vm/a.test.ts
ok   test/vm/a.test.ts  1 test, 1.0 s
run  test/vm/b.test.ts
  failed after 1.0 s: outer > inner
`;
    assert.deepEqual(reportOf(ran), [
      "the machine ended before its tests did; it has 45 minutes",
      "failed: test/vm/b.test.ts: outer > inner",
      "not finished: test/vm/b.test.ts",
      "its output is in output.log, what the machine itself said in console.log",
      "again: npm run test:vm -- --cpus 4 test/vm/b.test.ts",
    ]);
  });
  it("is repeated as a whole if no test began", () => {
    assert.deepEqual(reportOf("tests wait 11 times as long as usual\n"), [
      "the machine ended before its tests did; it has 45 minutes",
      "its output is in output.log, what the machine itself said in console.log",
      "again: npm run test:vm -- --cpus 4 test/vm/a.test.ts test/vm/b.test.ts",
    ]);
  });
});
