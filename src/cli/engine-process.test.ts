import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeEngine } from "../../test/support/fake-engine.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { systemHashing } from "../linux/files/hashing.ts";
import type { DaemonStart } from "../ports/daemons.ts";
import type { ProcessInfo } from "../ports/processes.ts";
import { runtimeLayout } from "../private-runtime/layout.ts";
import { FakeProcesses } from "../private-runtime/testing.ts";
import type { Health } from "../server/local-api.ts";
import { MemoryFiles } from "../sim/files.ts";
import { EngineGone } from "./engine-client.ts";
import { enginePids, ensureEngine } from "./engine-process.ts";
import type { MachineContext } from "./machine-context.ts";

const layout = runtimeLayout("/state", systemHashing);
const engineOf = (pid: number, directory = "/state"): ProcessInfo => {
  return { pid, name: "node", arguments: ["node", "podwright", "engine", "--state-dir", directory] };
};

/** An engine process that never answers, and a count of those that are started beside it. */
class Scene {
  readonly clock = new ManualClock();
  started = 0;
  readonly context: MachineContext;

  constructor() {
    const context: unknown = {
      clock: this.clock,
      layout,
      environment: {},
      files: new MemoryFiles(this.clock),
      processes: new FakeProcesses([engineOf(5)]),
      engine: { health: () => Promise.reject(new EngineGone("no answer")), what: "engine", hangRemedy: "" },
      daemons: {
        start: async () => {
          assert.ok(++this.started < 10, "engines are started without end");
          return { pid: 5 };
        },
      },
    };
    this.context = context as MachineContext;
  }
}

/** No engine runs; one that is started answers, and its command line is recorded. */
async function startedEngine(kept: string): Promise<{ readonly context: MachineContext; readonly commands: string[] }> {
  const files = new MemoryFiles(new ManualClock());
  for (const directory of ["/state", layout.manifests]) await files.makeDirectory(directory, 0o700);
  await files.write(layout.engineSettings, kept, 0o600);
  await files.write(`${layout.manifests}/pod_default_web.json`, "{}", 0o600);
  const commands: string[] = [];
  const health = async (): Promise<Health> => {
    if (commands.length === 0) throw new EngineGone("no answer");
    return new FakeEngine().health();
  };
  const context: unknown = {
    ...{ clock: new ManualClock(), layout, environment: {}, files, processes: new FakeProcesses(), engine: { health } },
    daemons: {
      start: async (daemon: DaemonStart) => {
        commands.push(daemon.arguments.join(" "));
        return { pid: 5 };
      },
    },
  };
  return { context: context as MachineContext, commands };
}

const start = { runtimeEndpoint: "unix:///run/cri.sock" };
const isRoot = process.getuid?.() === 0;
const skip = isRoot ? false : "it needs root";

test("beside an engine that does not answer no other is started, and the error names it", { skip }, async () => {
  const scene = new Scene();
  const ensured = ensureEngine(scene.context, start, AbortSignal.any([]));
  const rejected = assert.rejects(ensured, (error: unknown) => {
    assert.ok(error instanceof PodwrightError);
    assert.equal(error.exitCode, ExitCode.failed);
    assert.match(error.message, /^the engine \(process 5\) did not answer within 60 s$/);
    assert.match(error.remedy ?? "", /\/state\/engine\.log/);
    return true;
  });
  await scene.clock.advance(70_000);
  await rejected;
  assert.equal(scene.started, 0);
});

test("the wait for an engine ends with Ctrl-C", { skip }, async () => {
  const scene = new Scene();
  const interrupt = new AbortController();
  const ensured = ensureEngine(scene.context, start, interrupt.signal);
  const rejected = assert.rejects(ensured, /interrupted/);
  await scene.clock.advance(1000);
  interrupt.abort(new Error("interrupted"));
  await scene.clock.advance(1000);
  await rejected;
});

test("the next engine uses the runtime in which the pods of the one before are", { skip }, async () => {
  const { context, commands } = await startedEngine('{"evict":false,"runtimeEndpoint":"unix:///run/cri.sock"}');
  await ensureEngine(context, {}, AbortSignal.any([]));
  assert.match(commands.join("\n"), / engine --state-dir \/state --runtime-endpoint unix:\/\/\/run\/cri\.sock$/u);
});

test("no engine is started with another runtime than that of its pods", async () => {
  for (const kept of ['{"evict":false}', '{"evict":false,"runtimeEndpoint":"unix:///run/other.sock"}']) {
    const { context, commands } = await startedEngine(kept);
    await assert.rejects(ensureEngine(context, start, AbortSignal.any([])), (error: unknown) => {
      assert.ok(error instanceof PodwrightError);
      assert.equal(error.exitCode, ExitCode.badInput);
      assert.match(error.message, /^the pods of \/state run in .*, not in unix:\/\/\/run\/cri\.sock$/u);
      return true;
    });
    assert.deepEqual(commands, []);
  }
});

test("engines of other state directories and of other containers are not this one's", async () => {
  const processes = new FakeProcesses([engineOf(5), engineOf(6, "/other"), engineOf(7)]);
  processes.elsewhere.add(7);
  assert.deepEqual(await enginePids({ processes, layout }), [5]);
});
