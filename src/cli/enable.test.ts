import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeEngine } from "../../test/support/fake-engine.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { systemHashing } from "../linux/files/hashing.ts";
import { runtimeLayout } from "../private-runtime/layout.ts";
import { MemoryFiles } from "../sim/files.ts";
import { requireOwnRuntime } from "./enable.ts";
import { EngineGone } from "./engine-client.ts";
import type { MachineContext } from "./machine-context.ts";

const layout = runtimeLayout("/state", systemHashing);
const system = "unix:///run/containerd/containerd.sock";

/** @param endpoint of the running engine; undefined: none runs @param kept the runtime of the pods that the last one left */
async function check(endpoint: string | undefined, kept?: string): Promise<void> {
  const clock = new ManualClock();
  const files = new MemoryFiles(clock);
  if (kept !== undefined) {
    for (const directory of ["/state", layout.manifests]) await files.makeDirectory(directory, 0o700);
    await files.write(layout.engineSettings, JSON.stringify({ runtimeEndpoint: kept }), 0o600);
    await files.write(`${layout.manifests}/pod_default_web.json`, "{}", 0o600);
  }
  const health = async (): Promise<ReturnType<FakeEngine["health"]>> => {
    if (endpoint === undefined) throw new EngineGone("no answer");
    return { ...new FakeEngine().health(), runtimeEndpoint: endpoint };
  };
  const context: unknown = { clock, files, layout, engine: { health } };
  await requireOwnRuntime(context as MachineContext);
}

const refused = (error: unknown): boolean => {
  assert.ok(error instanceof PodwrightError);
  assert.equal(error.exitCode, ExitCode.badInput);
  assert.match(error.message, /^the pods of \/state run in unix:\/\/\/run\/containerd\/containerd\.sock, /u);
  return true;
};

test("manifests are not enabled beside pods in another runtime, whether their engine runs or not", async () => {
  await assert.rejects(check(system), refused);
  await assert.rejects(check(undefined, system), refused);
  await check(layout.containerd.endpoint);
  await check(undefined);
});
