import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { openContext } from "../../src/cli/context.ts";
import { disableCommand } from "../../src/cli/disable.ts";
import { enableCommand } from "../../src/cli/enable.ts";
import { EngineSession } from "../../src/cli/engine-session.ts";
import { enginePids } from "../../src/cli/engine-process.ts";
import { type MachineContext, openMachine } from "../../src/cli/machine-context.ts";
import { engineService, type ServicePlaces } from "../../src/cli/service-units.ts";
import { requestStop, waitUntilGone } from "../../src/cli/stopping.ts";
import { type OutputStream, Terminal } from "../../src/cli/terminal.ts";
import type { PodView } from "../../src/server/local-api.ts";
import { FileError } from "../../src/ports/files.ts";
import { FakeSystemd } from "../support/fake-systemd.ts";
import { systemDaemons } from "../../src/linux/processes/daemons.ts";
import { until } from "../support/podwright.ts";
import { ownEnvironment, ownProgram } from "../support/program.ts";
import { journaledUids, processesOf, removeDirectories, tracesOf } from "../support/traces.ts";

let directory = "";
let places: ServicePlaces;
let systemd: FakeSystemd;
let context: MachineContext;
let printed = "";

const manifest = (name: string): string => `
apiVersion: v1
kind: ConfigMap
metadata: { name: ${name} }
data: { GREETING: hello }
---
apiVersion: v1
kind: Pod
metadata: { name: ${name} }
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: app
      image: podwright.local/demo:1
      imagePullPolicy: IfNotPresent
      command: [/bin/sh, -c, "trap 'exit 0' TERM; while true; do sleep 1 & wait $!; done"]
      envFrom: [{ configMapRef: { name: ${name} } }]
`;

async function file(name: string, text: string): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, text);
  return path;
}

async function views(): Promise<readonly PodView[]> {
  return await context.engine.pods();
}

/** @returns the container's id */
async function running(name: string): Promise<string> {
  let id = "";
  await until(`${name} runs`, async () => {
    const pod = (await views()).find((view) => view.name === name);
    id = pod?.containers[0]?.id ?? "";
    return pod?.ready === true;
  });
  return id;
}

/** How many containers of these pods run, whether or not an engine does. */
async function containers(): Promise<number> {
  return (await processesOf(context.layout)).filter(({ command }) => command.includes("trap 'exit 0' TERM")).length;
}

/** What a command starts is itself, which here is this test. */
const startOwnProgram: MachineContext["daemons"]["start"] = (daemon) => {
  const [program = "", ...rest] = ownProgram;
  const words = daemon.arguments.slice(daemon.arguments.indexOf("engine"));
  return systemDaemons.start({ ...daemon, program, arguments: [...rest, ...words] });
};

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "podwright-enable-"));
  const units = join(directory, "units");
  await mkdir(units);
  const launcher = "/usr/lib/podwright/bin/podwright";
  places = { manifests: join(directory, "manifests"), units, booted: join(directory, "booted"), launcher };
  systemd = new FakeSystemd(directory, units, launcher);
  const stream: OutputStream = {
    write: (text) => {
      printed += String(text);
      return true;
    },
  };
  const opened = await openContext(new Terminal(stream, stream, {}), { stateDir: join(directory, "state") });
  const machine = openMachine(opened);
  context = { ...machine, processes: systemd.processes, daemons: { ...machine.daemons, start: startOwnProgram } };
});

after(async () => {
  await systemd[Symbol.asyncDispose]();
  await removeDirectories(context.layout);
  await rm(directory, { recursive: true, force: true });
});

test("without systemd as process 1 nothing changes, and one line says what to run instead", async () => {
  const web = await file("web.yaml", manifest("web"));
  await assert.rejects(enableCommand(context, [web], places), {
    message: "systemd is not process 1, so no service can start podwright at boot",
    remedy: "have your init run: podwright run --detach --wait none FILE",
  });
  assert.equal(existsSync(places.manifests), false);
  await mkdir(places.booted);
});

test("an invalid manifest, or one that cannot exist at boot, changes nothing", async () => {
  const bad = await file("bad.yaml", manifest("web").replace("image:", "imag:"));
  assert.equal(await enableCommand(context, [bad], places), 2);
  assert.match(printed, /bad\.yaml:\d+/u);
  for (const missing of ["missing.yaml", "missing", "bad.yaml/below"]) {
    await assert.rejects(enableCommand(context, [join(directory, missing)], places), / does not exist$/u);
  }
  await assert.rejects(enableCommand(context, ["-"], places), /- is not a file/u);
  await assert.rejects(enableCommand(context, ["https://example.com/a.yaml"], places), /is not a file/u);
  await assert.rejects(
    enableCommand(context, [await file("notes.txt", "")], places),
    /must end in \.yaml, \.yml or \.json/u,
  );
  await mkdir(join(directory, "other"));
  const other = await file("other/web.yaml", manifest("web"));
  await assert.rejects(enableCommand(context, [join(directory, "web.yaml"), other], places), /have the same name/u);
  assert.equal(existsSync(places.manifests), false);
  assert.deepEqual(await readdir(places.units), []);
});

test("a unit that podwright did not write is not changed", async () => {
  const unit = join(places.units, engineService);
  await writeFile(unit, "[Service]\nExecStart=/bin/true\n");
  await assert.rejects(enableCommand(context, [join(directory, "web.yaml")], places), /was not written by podwright/u);
  assert.equal(await readFile(unit, "utf8"), "[Service]\nExecStart=/bin/true\n");
  assert.equal(existsSync(places.manifests), false, "nothing else is changed either");
  // One that was there is removed, and not said to have taken the service along.
  await mkdir(places.manifests);
  await writeFile(join(places.manifests, "config.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: c }\n");
  printed = "";
  assert.equal(await disableCommand(context, [], places), 0);
  assert.equal(printed, `disabled: 1 manifest; no manifest is left; ${unit} stays: podwright did not write it\n`);
  assert.equal(existsSync(unit), true);
  await rm(unit);
  await rm(places.manifests, { recursive: true });
});

test("what cannot be written completely is not written at all", async () => {
  const failing = (bad: string, words: string): MachineContext => {
    const writeAtomic = async (path: string, data: string | Uint8Array, mode: number): Promise<void> => {
      if (path === bad) throw new FileError("EROFS", path, `EROFS: read-only file system, open '${path}'`);
      await context.files.writeAtomic(path, data, mode);
    };
    const run: MachineContext["processes"]["run"] = async (program, given, options) => {
      const result = await systemd.processes.run(program, given, options);
      return words === "" || given.join(" ") !== words ? result : { ...result, exitCode: 1, stderr: "no" };
    };
    return { ...context, files: { ...context.files, writeAtomic }, processes: { ...systemd.processes, run } };
  };
  const unit = join(places.units, engineService);
  const web = join(directory, "web.yaml");
  const other = await file("zz.yaml", manifest("zz"));
  for (const [bad, words] of [
    [unit, ""],
    [join(places.manifests, "zz.yaml"), ""],
    ["", "daemon-reload"],
    ["", `enable --quiet ${engineService}`],
  ] as const) {
    await assert.rejects(enableCommand(failing(bad, words), [web, other], places), /EROFS|systemctl/u);
    assert.equal(existsSync(places.manifests), false, bad + words);
    assert.deepEqual(await readdir(places.units), [], bad + words);
  }
});

test("a foreground run uses the service's engine and starts none of its own", async () => {
  const side = await file("side.yaml", manifest("side"));
  const [program = "", ...words] = ownProgram;
  const run = spawn(program, [...words, "run", "--keep", "--state-dir", context.layout.stateDirectory, side], {
    env: ownEnvironment(),
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  run.stderr.setEncoding("utf8").on("data", (text: string) => (said += text));
  const ended = once(run, "exit");
  const id = await running("side");
  assert.equal(await enableCommand(context, [join(directory, "web.yaml")], places), 0, `${printed}${systemd.log}`);
  await running("web");
  assert.equal(await running("side"), id, "the same container");
  await until("the run has found the new engine", async () => said.includes("the engine stopped; restarting it"));
  assert.equal((await enginePids(context)).length, 1);
  assert.ok(systemd.isActive);
  run.kill("SIGINT");
  assert.deepEqual(await ended, [0, null], said);
  assert.equal(await disableCommand(context, [], places), 0, printed);
  const session = new EngineSession(context, {}, AbortSignal.any([]));
  assert.equal(await containers(), 1);
  const signal = AbortSignal.any([]);
  const left = await session.call((engine) => engine.pods());
  await requestStop(context, session, left, { graceSeconds: 0, signal });
  await waitUntilGone(context, session, left, { quiet: true, signal });
});

test("enabled pods run, survive restarts of the service, and others can be added", async () => {
  assert.equal(await enableCommand(context, [join(directory, "web.yaml")], places), 0, printed);
  assert.match(printed, /enabled: web runs now and after each boot\n {2}podwright ps\n {2}podwright why web\n/u);
  assert.ok(systemd.isEnabled(engineService));
  const id = await running("web");
  await systemd.restart(engineService);
  assert.ok(systemd.said.some((message) => message.startsWith("STOPPING=1")));
  assert.equal(await running("web"), id, "the same container");
  const monotonic = (): bigint => process.hrtime.bigint() / 1000n;
  const began = monotonic();
  let at = 0n;
  assert.equal(await enableCommand(context, [await file("db.yaml", manifest("db"))], places), 0, printed);
  await running("db");
  assert.equal(await running("web"), id);
  await until("the reload is over", async () => {
    systemd.listen();
    const reload = systemd.said.findIndex((message) => message.startsWith("RELOADING=1\nMONOTONIC_USEC="));
    at = BigInt(systemd.said[reload]?.split("=").at(-1) ?? 0);
    return reload >= 0 && systemd.said.slice(reload).some((message) => message.startsWith("READY=1"));
  });
  assert.ok(began < at && at < monotonic(), "when the reload began, by CLOCK_MONOTONIC in microseconds");
});

test("a file that is added or removed takes effect immediately", async () => {
  await writeFile(join(places.manifests, "extra.yaml"), manifest("extra"));
  await running("extra");
  await rm(join(places.manifests, "extra.yaml"));
  await until("extra is gone", async () => !(await views()).some(({ name }) => name === "extra"));
});

test("disabling while the service is stopped stops the manifest's pods, keeps the others, and leaves no engine", async () => {
  await writeFile(join(places.manifests, "extra.yaml"), manifest("extra"));
  await running("extra");
  const id = await running("web");
  await systemd.stop();
  assert.deepEqual(await enginePids(context), []);
  assert.equal(await containers(), 3);
  assert.equal(await disableCommand(context, ["extra.yaml"], places), 0, printed);
  assert.equal(await containers(), 2);
  await until("the engine of this command has ended", async () => (await enginePids(context)).length === 0);
  await systemd.restart(engineService);
  assert.equal(await running("web"), id);
  assert.ok(!(await views()).some(({ name }) => name === "extra"));
});

test("a pod is removed with its invalid manifest, and the error is reported", async () => {
  await writeFile(join(places.manifests, "extra.yaml"), manifest("extra"));
  await running("extra");
  await writeFile(join(places.manifests, "extra.yaml"), "kind: Pod\n");
  printed = "";
  assert.equal(await disableCommand(context, ["extra.yaml"], places), 0, printed);
  assert.match(printed, /warning: .*extra\.yaml/u);
  assert.ok(!(await views()).some(({ name }) => name === "extra"));
});

test("disabling stops a manifest's pods, and the last one removes the service completely", async () => {
  assert.equal(await disableCommand(context, ["db.yaml", join(places.manifests, "db.yaml")], places), 0, printed);
  assert.deepEqual(
    (await views()).map(({ name }) => name),
    ["web"],
  );
  await assert.rejects(disableCommand(context, ["db.yaml"], places), {
    message: "db.yaml is not enabled",
    remedy: "enabled: web.yaml",
  });
  const uids = await journaledUids(context.layout);
  assert.equal(await disableCommand(context, [], places), 0, printed);
  assert.match(printed, /disabled: 1 manifest; no manifest is left, and the service is removed\n$/u);
  assert.equal(systemd.isActive, false);
  assert.equal(systemd.isEnabled(engineService), false);
  assert.deepEqual(await readdir(places.units), []);
  assert.deepEqual(await readdir(places.manifests), []);
  await assert.rejects(disableCommand(context, [], places), /nothing is enabled/u);
  const traces = await tracesOf(context.layout, uids);
  assert.deepEqual(
    traces.filter((trace) => !trace.startsWith("path ")),
    [],
  );
});

test("a file of another pod does not replace one of the same name, a newer version does, and a directory is disabled as it was enabled", async () => {
  const [one, two] = ["one dir", "two"].map((name) => join(directory, name));
  assert.ok(one !== undefined && two !== undefined);
  for (const path of [one, two]) await mkdir(path);
  await file("one dir/same.yaml", `${manifest("first")}---${manifest("second")}`);
  await file("one dir/more.yaml", manifest("more"));
  const foreign = await file("two/same.yaml", manifest("foreign"));
  assert.equal(await enableCommand(context, [one], places), 0, printed);
  await running("first");
  await assert.rejects(enableCommand(context, [foreign], places), {
    message: /^another same\.yaml is enabled, with .*Pod default\/first/u,
    remedy: "rename this file, or disable that one first: podwright disable same.yaml",
  });
  assert.match(await readFile(join(places.manifests, "same.yaml"), "utf8"), /name: first/u);
  await file("one dir/same.yaml", manifest("first"));
  printed = "";
  assert.equal(await enableCommand(context, [join(one, "same.yaml")], places), 0, printed);
  assert.match(printed, /^no longer enabled: second\nenabled: first runs/u);
  await assert.rejects(disableCommand(context, [join(directory, "units")], places), {
    message: `no manifest in ${join(directory, "units")} is enabled`,
  });
  assert.equal(await disableCommand(context, [one], places), 0, printed);
  assert.match(printed, /disabled: 2 manifests; no manifest is left, and the service is removed\n$/u);
});

test("an interrupted disable is completed by the next one, which waits for stops in progress", async () => {
  const slow = manifest("slow").replace("trap 'exit 0' TERM", "trap '' TERM").replace("Seconds: 1", "Seconds: 4");
  assert.equal(await enableCommand(context, [await file("slow.yaml", slow)], places), 0, printed);
  await running("slow");
  // As an interrupted disable leaves it.
  await rm(join(places.manifests, "slow.yaml"));
  await until("slow is stopping", async () => (await views()).some(({ state }) => state === "terminating"));
  assert.equal(await disableCommand(context, [], places), 0, printed);
  assert.match(
    printed,
    /slow is stopped .*\ndisabled: 0 manifests; no manifest is left, and the service is removed\n$/u,
  );
  assert.deepEqual(await readdir(places.units), []);
  assert.deepEqual(await processesOf(context.layout), []);
});
