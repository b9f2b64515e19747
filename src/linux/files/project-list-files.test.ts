import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, readFileSync, renameSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import type { ProjectLists } from "../../ports/project-quotas.ts";
import { systemClock } from "../processes/clock.ts";
import { type TestDirectory, testDirectory } from "../processes/testing.ts";
import { systemFiles } from "./files.ts";
import { ProjectListFiles } from "./project-list-files.ts";

const listsIn = (directory: TestDirectory): ProjectListFiles =>
  new ProjectListFiles(systemFiles, systemClock, {
    projects: directory.join("projects"),
    projid: directory.join("projid"),
  });
const added =
  (line: string) =>
  async ({ projects, projid }: ProjectLists): Promise<ProjectLists> => ({ projects: `${projects}${line}\n`, projid });

test("missing lists are empty, and an edit creates them and keeps the mode and every byte of theirs", async () => {
  using directory = testDirectory();
  const lists = listsIn(directory);
  assert.deepEqual(await lists.lists(), { projects: "", projid: "" });
  await lists.editLists("/a", added("1:/a"));
  assert.equal(statSync(directory.join("projects")).mode & 0o7777, 0o644);
  assert.equal(readFileSync(directory.join("projid"), "utf8"), "");
  writeFileSync(directory.join("projects"), Buffer.from([0xe4, 0xff, 0x0a]));
  chmodSync(directory.join("projects"), 0o600);
  await lists.editLists("/b", added("2:/b"));
  assert.equal(readFileSync(directory.join("projects")).toString("latin1"), "\xe4\xff\n2:/b\n");
  assert.equal(statSync(directory.join("projects")).mode & 0o7777, 0o600);
});

test("an edit without a change replaces nothing, and one that fails changes nothing and unlocks", async () => {
  using directory = testDirectory();
  const lists = listsIn(directory);
  writeFileSync(directory.join("projects"), "1:/a\n");
  const { ino } = statSync(directory.join("projects"));
  await lists.editLists("/a", async () => undefined);
  await lists.editLists("/a", async (before) => ({ ...before }));
  await assert.rejects(
    lists.editLists("/a", async () => {
      throw new Error("no project");
    }),
    /no project/,
  );
  assert.equal(statSync(directory.join("projects")).ino, ino);
  await lists.editLists("/a", added("2:/b"));
  assert.deepEqual((await lists.lists()).projects, "1:/a\n2:/b\n");
});

test("a link in the place of a list is refused, so that no other file is written", async () => {
  using directory = testDirectory();
  writeFileSync(directory.join("shadow"), "secret\n");
  symlinkSync(directory.join("shadow"), directory.join("projid"));
  const lists = listsIn(directory);
  await assert.rejects(lists.lists(), /is not a plain file/);
  await assert.rejects(lists.editLists("/a", added("1:/a")), /is not a plain file/);
  assert.equal(readFileSync(directory.join("shadow"), "utf8"), "secret\n");
});

test("concurrent edits lose nothing, although each replaces the file that the next one has opened", async () => {
  using directory = testDirectory();
  const numbers = Array.from({ length: 8 }, (_, index) => index);
  await Promise.all(numbers.map((number) => listsIn(directory).editLists("/x", added(`${number}:/x`))));
  const lines = (await listsIn(directory).lists()).projects.trim().split("\n");
  assert.deepEqual(
    lines.toSorted(),
    numbers.map((number) => `${number}:/x`),
  );
});

test("a kubelet that has locked a list and replaces it is waited for", async () => {
  using directory = testDirectory();
  const path = directory.join("projects");
  writeFileSync(path, "");
  const other = spawn("flock", ["-x", path, "sh", "-c", "echo locked; read line"], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  await once(other.stdout, "data");
  let isDone = false;
  const edit = listsIn(directory)
    .editLists("/b", added("2:/b"))
    .then(() => (isDone = true));
  await systemClock.sleep("the edit to wait", 300);
  assert.equal(isDone, false);
  writeFileSync(directory.join("new"), "1:/a\n");
  renameSync(directory.join("new"), path);
  other.stdin.end("\n");
  await edit;
  assert.equal(readFileSync(path, "utf8"), "1:/a\n2:/b\n");
  assert.equal(existsSync(directory.join("new")), false);
});
