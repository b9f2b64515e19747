import assert from "node:assert/strict";
import { existsSync, symlinkSync } from "node:fs";
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

/** Installation by npm, upgrade, restart of the machine and removal, on a real systemd. */
const example = "/usr/local/lib/node_modules/podwright/examples/hello.yaml";

/** What docs/install.md says of a removal, and npm's own directories. */
const stays =
  /^new: (?:file (?:\/(?:var\/lib\/(?:podwright|cni)|run\/podwright|etc\/podwright|root\/\.npm)|\/usr\/local\/(?:lib\/node_modules|share\/man\/man1)$)|rule .*CNI-HOSTPORT-)/u;

/** Without a network: a download would fail. */
function npm(...words: readonly string[]): string {
  return run("node", [`${packages}/npm/bin/npm-cli.js`, ...words, "--global", "--prefix", "/usr/local", "--offline"]);
}

testOf("before", "npm installs without downloads, enable runs a pod, an upgrade restarts no container", async () => {
  symlinkSync("/podwright/node_modules/node/bin/node", "/usr/local/bin/node");
  npm("ls"); // creates npm's own directories
  const traces = machineTraces();
  npm("install", `${packages}/podwright.tgz`);
  assert.deepEqual(
    changes(traces, machineTraces()).filter((line) => !/^new: file (?:\/usr\/local\/|\/root\/\.npm)/u.test(line)),
    [],
  );
  console.log(`${podwright("--version")}; ${run("podwright", ["doctor"])}`);
  podwright("enable", example);
  const containers = await readyContainers("hello");
  npm("install", `${packages}/podwright.tgz`);
  run("systemctl", ["restart", service]);
  assert.deepEqual(await readyContainers("hello"), containers);
  restartWith({ traces, containers });
});

testOf("after", "pods are back after the machine's restart, and removal leaves what docs/install.md says", async () => {
  assert.ok(remembered);
  await readyContainers("hello");
  console.log(`ready ${uptime()} s after the machine's start; ${run("podwright", ["ps"])}`);
  podwright("disable", "hello.yaml");
  assert.equal(serviceState(), "inactive");
  npm("uninstall", "podwright");
  assert.equal(existsSync("/usr/local/bin/podwright"), false);
  const left = changes(remembered.traces, machineTraces());
  assert.deepEqual(
    left.filter((line) => !stays.test(line)),
    [],
  );
});
