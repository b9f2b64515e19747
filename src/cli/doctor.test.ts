import assert from "node:assert/strict";
import { test } from "node:test";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { openContext } from "./context.ts";
import { doctorCommand, engineChecks } from "./doctor.ts";
import { EngineClient } from "./engine-client.ts";
import { openMachine } from "./machine-context.ts";
import { FakeFiles, FakeMounts, FakeProcesses } from "../private-runtime/testing.ts";
import type { Health } from "../server/local-api.ts";
import { Terminal } from "./terminal.ts";

/** What `podwright doctor` prints as an ordinary user. @param engines the engine's health, or the code of the call to its socket */
async function told(engines: string | Partial<Health>, json?: true): Promise<string> {
  let printed = "";
  const stream = {
    write: (text: string | Uint8Array): boolean => {
      printed += String(text);
      return true;
    },
  };
  const machine = openMachine(await openContext(new Terminal(stream, stream, {}), { stateDir: "/srv/podwright" }));
  const files = new FakeFiles().put("/proc/self/status", "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n");
  const request = async (): Promise<{ status: number; body: string }> => {
    if (typeof engines !== "string") return { status: 200, body: JSON.stringify(engines) };
    throw Object.assign(new Error(`connect ${engines}`), { code: engines });
  };
  const transport = { request, lines: () => assert.fail("no journal is read") };
  const engine = new EngineClient(transport, "/srv/podwright");
  const processes = new FakeProcesses([], () => ({}));
  const context = { ...machine, files, mounts: new FakeMounts(), processes, engine };
  assert.equal(await doctorCommand(context, json === undefined ? {} : { json }), ExitCode.environment);
  return printed;
}

test("an engine whose socket is closed to this user hides no other check", async () => {
  const lines = await told("EACCES");
  assert.match(lines, /✓ platform +Linux/u);
  assert.match(lines, /✗ user +user id 1000, not root/u);
  assert.match(lines, /✗ programs +missing: containerd/u);
  assert.match(lines, /✗ engine +permission denied on the socket of .*\n +→ run this command as root\n/u);
  assert.doesNotMatch(lines, /no engine runs/u);
  const { checks } = JSON.parse(await told("EACCES", true)) as {
    readonly checks: readonly { readonly name: string }[];
  };
  assert.ok(checks.some(({ name }) => name === "engine"));
});

test("where no engine runs, that is no failed check", async () => {
  const lines = await told("ENOENT");
  assert.match(lines, /no engine runs for \/srv\/podwright/u);
  assert.doesNotMatch(lines, /✗ engine/u);
});

test("in JSON, the engine's remedies are as they are typed, too", async () => {
  const remedy = "'podwright evict --confirm' allows it";
  const check = { name: "evictions", ok: false, detail: "waiting" };
  const runtimeEndpoint = "unix:///run/podwright/containerd.sock";
  const health = {
    checks: [
      { ...check, remedy },
      { ...check, name: "other" },
    ],
    runtimeEndpoint,
    pid: 12,
  };
  const { checks, engine } = JSON.parse(await told(health, true)) as Pick<Health, "checks"> & { engine: Health };
  const typed = "'podwright evict --state-dir /srv/podwright --confirm' allows it";
  assert.equal(checks.find(({ name }) => name === "engine: evictions")?.remedy, typed);
  assert.deepEqual(engine, {
    ...health,
    checks: [
      { ...check, remedy: typed },
      { ...check, name: "other" },
    ],
  });
});

test("a defect is not presented as a check", async () => {
  await assert.rejects(told("ERR_ASSERTION"), (error) => !(error instanceof PodwrightError));
});

test("the engine's checks say whether pods are evicted for the node", () => {
  const evictions = (checks: Health["checks"]): string | undefined => {
    return engineChecks({ checks }).find(({ name }) => name === "engine: evictions")?.detail;
  };
  assert.match(evictions([{ name: "pressure", ok: true, detail: "no pressure" }]) ?? "", /^on: /u);
  assert.match(evictions([{ name: "runtime", ok: true, detail: "answers" }]) ?? "", /^off: /u);
});
