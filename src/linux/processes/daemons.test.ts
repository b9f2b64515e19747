import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { systemDaemons } from "./daemons.ts";

test("a daemon leads its own session and writes to its log", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "podwright-daemon-"));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const { pid } = await systemDaemons.start({
    program: "/bin/sh",
    arguments: ["-c", 'echo "greeting $GREETING in $PWD"; echo problem >&2; exec sleep 60'],
    logPath: join(directory, "log"),
    environment: { GREETING: "hello" },
    workingDirectory: directory,
  });
  t.after(() => process.kill(pid, "SIGKILL"));
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  const [, , processGroup, session] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  assert.equal(Number(processGroup), pid);
  assert.equal(Number(session), pid);
  let log = "";
  for (let attempt = 0; attempt < 100 && !log.includes("problem"); attempt++) {
    await sleep(20);
    log = await readFile(join(directory, "log"), "utf8");
  }
  assert.equal(log, `greeting hello in ${directory}\nproblem\n`);
});

test("a missing program is an error", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "podwright-daemon-"));
  t.after(() => rm(directory, { recursive: true, force: true }));
  const start = systemDaemons.start({
    program: "/no/such/program",
    arguments: [],
    logPath: join(directory, "log"),
    environment: {},
    workingDirectory: directory,
  });
  await assert.rejects(start, { code: "ENOENT" });
});
