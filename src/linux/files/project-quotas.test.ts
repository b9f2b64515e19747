import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { CommandResult } from "../../ports/processes.ts";
import type { ProjectQuotas, QuotaFileSystem } from "../../ports/project-quotas.ts";
import { systemClock } from "../processes/clock.ts";
import { systemProcesses } from "../processes/processes.ts";
import { systemFiles } from "./files.ts";
import { projectQuotas } from "./project-quotas.ts";

const volume = "/var/lib/kubelet/pods/1/volumes/kubernetes.io~empty-dir/data";
const on: QuotaFileSystem = { type: "xfs", mountPoint: "/var/lib/kubelet", source: "/dev/vdb" };
const state = "Project quota state on /var/lib/kubelet (/dev/vdb)\n  Accounting: ON\n  Enforcement: ON\n";
const usage =
  "/dev/vdb                     8          0          0   00 [--------]          2          0          0   00 [--------] /var/lib/kubelet\n";
const mounts = [
  "1 0 254:0 / / rw - ext4 /dev/vda rw",
  "2 1 254:16 / /var/lib/kubelet rw - tmpfs hidden rw",
  "3 1 254:16 / /var/lib/kubelet rw - xfs /dev/vdb rw,prjquota",
  "4 1 0:30 / /run rw - tmpfs tmpfs rw",
  "5 1 254:32 / /mnt/with\\040space rw - xfs /dev/vdc rw",
];

/** Runs of programs, with what their mounts file said. */
class Programs {
  readonly runs: string[][] = [];
  readonly mountsFiles: string[] = [];
  outcome: Partial<CommandResult> = {};

  readonly quotas: ProjectQuotas = projectQuotas({
    clock: systemClock,
    files: systemFiles,
    processes: { run: async (program, words) => this.#run(program, words) },
    mountTable: () => Buffer.from(`${mounts.join("\n")}\n`),
  });

  #run(program: string, words: readonly string[]): CommandResult {
    const mountsFile = words.find((_, index) => words[index - 1] === "-t");
    if (mountsFile !== undefined) this.mountsFiles.push(readFileSync(mountsFile, "utf8"));
    this.runs.push([program, ...words.map((word) => (word === mountsFile ? "MOUNTS" : word))]);
    return { exitCode: 0, signal: undefined, stdout: "", stderr: "", ...this.outcome };
  }

  /** The words of each `-c`, of the last run. */
  get commands(): string[] {
    const last = this.runs.at(-1) ?? [];
    return last.flatMap((word, index) => (last[index - 1] === "-c" ? word : []));
  }
}

test("a path's file system is that of the mount on top, if it accounts for projects", async () => {
  const programs = new Programs();
  programs.outcome = { stdout: state };
  assert.deepEqual(await programs.quotas.fileSystemOf(volume), on);
  assert.deepEqual(programs.runs, [
    ["xfs_quota", "-t", "MOUNTS", "-P/dev/null", "-D/dev/null", "-x", "-f", "-c", "state -p", "/var/lib/kubelet"],
  ]);
  assert.deepEqual(programs.mountsFiles, ["/dev/vdb /var/lib/kubelet xfs rw 0 0\n"], "no other mount is looked at");
  programs.outcome = { stdout: state.replace("ON", "OFF") };
  assert.equal(await programs.quotas.fileSystemOf(volume), undefined);
});

test("for file systems of other types, and those at unusable paths, no program runs", async () => {
  const programs = new Programs();
  assert.equal(await programs.quotas.fileSystemOf("/run/kubelet"), undefined);
  assert.equal(await programs.quotas.fileSystemOf("/mnt/with space/kubelet"), undefined);
  assert.deepEqual(programs.runs, []);
});

test("a project's usage is read with the state, without which a missing record means nothing", async () => {
  const programs = new Programs();
  programs.outcome = { stdout: `${state}${usage}` };
  assert.deepEqual(await programs.quotas.usage(volume, on, 1_048_577), { bytes: 8192, inodes: 2 });
  assert.deepEqual(programs.commands, ["state -p", "quota -p -N -n -v -b -i 1048577"]);
  programs.outcome = { stdout: state };
  assert.equal(await programs.quotas.usage(volume, on, 1_048_577), undefined);
  programs.outcome = { stdout: "" };
  await assert.rejects(programs.quotas.usage(volume, on, 1_048_577), /does not account for projects any more/);
});

test("a directory gets a project with the largest limit of its file system, and loses it again", async () => {
  const programs = new Programs();
  await programs.quotas.assign(volume, on, 1_048_577);
  assert.deepEqual(programs.commands, [
    "limit -p bhard=9223372036854775807 bsoft=9223372036854775807 1048577",
    `project -s -d 0 -p ${volume} 1048577`,
  ]);
  await programs.quotas.assign(volume, { ...on, type: "ext4" }, 1_048_577);
  assert.equal(programs.commands[0], "limit -p bhard=288230376151711743 bsoft=288230376151711743 1048577");
  await programs.quotas.release(volume, on, 1_048_577);
  assert.deepEqual(programs.commands, ["limit -p bhard=0 bsoft=0 1048577"]);
});

test("a path that would be several words of a command is refused", async () => {
  const programs = new Programs();
  for (const path of ["/a b", "/a\n-x", '/a"b', "relative", "/ä"]) {
    await assert.rejects(programs.quotas.assign(path, on, 1), /cannot be a word/);
    await assert.rejects(programs.quotas.projectOf(path), /cannot be a word/);
  }
  assert.deepEqual(programs.runs, []);
});

test("a directory's project is read without its files", async () => {
  const programs = new Programs();
  programs.outcome = { stdout: "projid = 1048577\n" };
  assert.equal(await programs.quotas.projectOf(volume), 1_048_577);
  assert.deepEqual(programs.runs, [["xfs_io", "-r", "-c", "lsproj", volume]]);
  programs.outcome = { stdout: "" };
  await assert.rejects(programs.quotas.projectOf(volume), /shows no project/);
});

test("a failure is the program's own words, and a missing program is named with its package", async () => {
  const programs = new Programs();
  programs.outcome = { exitCode: 1, stderr: "xfs_quota: cannot set limits: Operation not permitted\n" };
  await assert.rejects(programs.quotas.release(volume, on, 1), /cannot set limits: Operation not permitted$/);
  programs.outcome = { exitCode: undefined, signal: "SIGKILL" };
  await assert.rejects(programs.quotas.release(volume, on, 1), /^Error: xfs_quota: ended by SIGKILL$/);
  const processes = { run: systemProcesses.run.bind(systemProcesses, join(import.meta.dirname, "no-such-program")) };
  const missing = projectQuotas({
    ...{ clock: systemClock, files: systemFiles },
    processes: { run: async (_program, words, options) => await processes.run(words, options) },
  });
  await assert.rejects(missing.release(volume, on, 1), /^Error: xfs_quota is missing: install xfsprogs$/);
});
