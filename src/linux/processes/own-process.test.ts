import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { setOomScoreAdjust } from "./own-process.ts";
import { systemProcesses } from "./processes.ts";

test("podwright's own OOM score is set", async () => {
  // This process ends with this file; a higher score needs no privilege.
  await setOomScoreAdjust(700);
  assert.equal((await readFile("/proc/self/oom_score_adj", "utf8")).trim(), "700");
});

test("a process that is named is found by that name, with its arguments", async () => {
  const program = `
    const { nameProcess } = await import(${JSON.stringify(new URL("own-process.ts", import.meta.url).href)});
    await nameProcess("kubelet", ["--config", "/etc/kubelet.yaml"]);
    console.log("named");
    process.stdin.resume();`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "exit");
  try {
    await once(child.stdout, "data");
    const found = (await systemProcesses.list()).find(({ pid }) => pid === child.pid);
    assert.deepEqual(found, {
      pid: child.pid,
      name: "kubelet",
      arguments: ["kubelet", "--config", "/etc/kubelet.yaml"],
    });
  } finally {
    child.stdin.end();
    await ended;
  }
});
