import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { run } from "../machine.ts";
import {
  changes,
  machineTraces,
  packages,
  podwright,
  readyContainers,
  remembered,
  restartWith,
  service,
  serviceState,
  testOf,
  uptime,
} from "./installed.ts";

/** Installation, upgrade, restart of the machine, removal and purge of the Debian package, on a real systemd. */
const example = "/usr/lib/podwright/examples/hello.yaml";

const dpkg = (...words: readonly string[]): string => run("dpkg", words);

testOf("before", "installation starts nothing, enable runs a pod, an upgrade restarts no container", async () => {
  const traces = machineTraces();
  const installedMs = timed(() => dpkg("--install", `${packages}/earlier.deb`));
  assert.equal(serviceState(), "inactive");
  assert.deepEqual(
    changes(traces, machineTraces()).filter((line) => !line.startsWith("new: file /usr/")),
    [],
  );
  console.log(`installed in ${installedMs} ms; ${podwright("--version")}; ${run("podwright", ["doctor"])}`);

  const enabledMs = timed(() => podwright("enable", example));
  const containers = await readyContainers("hello");
  assert.equal(serviceState(), "active");
  console.log(`enabled in ${enabledMs} ms`);

  const pid = mainPid();
  dpkg("--install", `${packages}/podwright.deb`);
  assert.notEqual(mainPid(), pid, "the service runs the new version");
  assert.deepEqual(await readyContainers("hello"), containers);
  restartWith({ traces, containers });
});

testOf("after", "pods are back after the machine's restart, and nothing is left after remove and purge", async () => {
  assert.ok(remembered);
  const containers = await readyContainers("hello");
  console.log(`ready ${uptime()} s after the machine's start; ${run("podwright", ["ps"])}`);
  assert.notDeepEqual(containers, remembered.containers);
  const isRunning = (): boolean => run("sh", ["-c", "busybox wget -q -O - http://127.0.0.1:8080 || true"]) !== "";
  assert.ok(isRunning());

  dpkg("--remove", "podwright");
  assert.equal(existsSync("/usr/bin/podwright"), false);
  assert.equal(serviceState(), "inactive");
  assert.ok(isRunning(), "pods outlive the package");
  dpkg("--purge", "podwright");
  assert.ok(!isRunning());
  assert.deepEqual(changes(remembered.traces, machineTraces()), []);
});

function mainPid(): string {
  return run("systemctl", ["show", "--property=MainPID", "--value", service]);
}

function timed(action: () => void): number {
  const began = Date.now();
  action();
  return Date.now() - began;
}
