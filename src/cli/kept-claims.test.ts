import assert from "node:assert/strict";
import { test } from "node:test";
import { dataClaim, RunClaimsScene, using } from "../../test/support/run-claims-scene.ts";
import type { Pod } from "../api/pod.ts";
import { PodwrightError } from "../base/errors.ts";
import { systemHashing } from "../linux/files/hashing.ts";
import { runtimeLayout } from "../private-runtime/layout.ts";
import { Annotation } from "../runtime/config/labels.ts";
import { keepSpec } from "../runtime/layout/kept-spec.ts";
import { RunStore } from "../sources/run-store.ts";
import { EngineGone } from "./engine-client.ts";
import type { MachineContext } from "./machine-context.ts";
import { Terminal } from "./terminal.ts";
import { volumesCommand } from "./volumes.ts";

const gone = async (): Promise<never> => Promise.reject(new EngineGone("no engine runs"));

/** A claim `data` of a state directory without an engine, and pod web that uses it. */
async function scene() {
  const kept = await RunClaimsScene.started();
  await kept.take(dataClaim);
  const { clock, files, mounts } = kept;
  let printed = "";
  const stream = { write: (text: string | Uint8Array) => Boolean((printed += String(text))) };
  const context: unknown = {
    ...{ clock, files, mounts, layout: runtimeLayout("/state", systemHashing) },
    terminal: new Terminal(stream, stream, { NO_COLOR: "1" }),
    engine: { claims: gone, freeVolumes: gone, removeClaim: gone },
  };
  const web = using("data");
  const annotations = { [Annotation.configSource]: "run" };
  const pod: Pod = { ...web, metadata: { ...web.metadata, annotations } };
  const volumes = (...operands: string[]): Promise<number> =>
    volumesCommand(context as MachineContext, operands, { force: true });
  const start = async (): Promise<void> => {
    await files.makeDirectory(`/state/kubelet/pods/${pod.metadata.uid}`, 0o750);
    await keepSpec(files, { rootDirectory: "/state/kubelet" }, pod, "start");
  };
  const want = async (): Promise<void> => {
    await files.makeDirectory("/state/manifests", 0o700);
    await new RunStore(files, "/state/manifests").save({ apiVersion: "v1", kind: "Pod", ...pod });
  };
  return { files, volumes, start, want, printed: () => printed };
}

async function refused(work: Promise<number>, message: string, remedy: string): Promise<void> {
  const error: unknown = await work.catch((thrown: unknown) => thrown);
  assert.ok(error instanceof PodwrightError, String(error));
  assert.deepEqual([error.message, error.remedy], [message, remedy]);
}

test("a pod that was being stopped when its engine ended uses its claim, and only an engine can end that", async () => {
  const { files, volumes, start, printed } = await scene();
  await start();
  await volumes();
  assert.match(printed(), /^default +data .* web +\/state\/volumes\/default\/data$/mu);
  const message = "claim data is used by web, which was being stopped when the engine ended";
  const run = "start the engine ('podwright run --state-dir /state --detach')";
  await refused(volumes("rm", "data"), message, `${run}: it completes the stop; then try again`);
  assert.ok(await files.stat("/state/volumes/default/data"));
});

test("a claim of a stored pod cannot be removed while no engine runs, which is to be started first", async () => {
  const { volumes, start, want } = await scene();
  await want();
  for (const ready of [async () => {}, start]) {
    await ready();
    const run = "start the engine ('podwright run --state-dir /state --detach')";
    const stop = "'podwright stop --state-dir /state web'";
    await refused(volumes("rm", "data"), "claim data is used by web", `${run}, then ${stop}`);
  }
});
