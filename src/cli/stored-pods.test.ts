import assert from "node:assert/strict";
import { test } from "node:test";
import { dataClaim, RunClaimsScene, using } from "../../test/support/run-claims-scene.ts";
import { podView } from "../../test/support/pod-views.ts";
import type { Pod } from "../api/pod.ts";
import { ExitCode } from "../base/errors.ts";
import { podUid } from "../base/ids.ts";
import { systemHashing } from "../linux/files/hashing.ts";
import { runtimeLayout } from "../private-runtime/layout.ts";
import { Annotation } from "../runtime/config/labels.ts";
import { keepSpec } from "../runtime/layout/kept-spec.ts";
import type { PodView } from "../server/local-api.ts";
import { RunStore } from "../sources/run-store.ts";
import type { MachineContext } from "./machine-context.ts";
import { runCommand, type RunOptions } from "./run.ts";
import { Terminal } from "./terminal.ts";

const endpoint = "unix:///run/podwright/containerd.sock";

/** An engine that lists these pods, above the directory of pod web. */
async function scene(views: (web: Pod) => readonly PodView[]) {
  const kept = await RunClaimsScene.started();
  await kept.take(dataClaim);
  const { clock, files, mounts } = kept;
  let printed = "";
  const stream = { write: (text: string | Uint8Array) => Boolean((printed += String(text))) };
  const spec = using("data");
  const annotations = { [Annotation.configSource]: "run" };
  const web: Pod = { ...spec, metadata: { ...spec.metadata, annotations } };
  await files.makeDirectory(`/state/kubelet/pods/${web.metadata.uid}`, 0o750);
  await keepSpec(files, { rootDirectory: "/state/kubelet" }, web, "start");
  const health = { runtime: "containerd", runtimeEndpoint: endpoint, pid: 1, checks: [], journalSeq: 0 };
  const context: unknown = {
    ...{ clock, files, mounts, layout: runtimeLayout("/state", systemHashing) },
    terminal: new Terminal(stream, stream, { NO_COLOR: "1" }),
    engine: { health: async () => ({ ...health, knowsAllPods: true }), pods: async () => views(web) },
  };
  const run = (options: Partial<RunOptions> = {}): Promise<ExitCode> => {
    const detach = { detach: true, wait: "none", timeout: 1000, ...options } as const;
    return runCommand(context as MachineContext, [], detach);
  };
  const want = async (): Promise<void> => {
    await files.makeDirectory("/state/manifests", 0o700);
    await new RunStore(files, "/state/manifests").save({ apiVersion: "v1", kind: "Pod", ...web });
  };
  return { files, run, want, printed: () => printed };
}

const stopping = ({ metadata: { name, uid } }: Pod): PodView => podView({ name, uid, state: "terminating" });
const db = podView({ name: "db", uid: podUid("db") });

test("with nothing stored but a pod that was being stopped, a run says so, and has no more to do", async () => {
  // The engine may not list it yet, and may have removed it already.
  for (const views of [(web: Pod) => [stopping(web)], () => []]) {
    const { run, printed } = await scene(views);
    assert.equal(await run({ wait: "ready" }), ExitCode.done);
    assert.equal(printed(), "completing the stop of web\n");
    const json = await scene(views);
    assert.equal(await json.run({ json: true }), ExitCode.done);
    assert.deepEqual(JSON.parse(json.printed()), { wait: "none", reached: true, pods: [] });
  }
});

test("a pod that is being stopped is not waited for beside those that shall run", async () => {
  const { run, printed } = await scene((web) => [stopping(web), db]);
  assert.equal(await run(), ExitCode.done);
  assert.match(printed(), /^running db on .*\n(?:.*\n)*?completing the stop of web\n/u);
  const json = await scene((web) => [stopping(web), db]);
  assert.equal(await json.run({ json: true }), ExitCode.done);
  const { pods } = JSON.parse(json.printed()) as { readonly pods: readonly PodView[] };
  assert.deepEqual(
    pods.map(({ name }) => name),
    ["db"],
  );
});

test("a stored pod is run, and without one and any stop a manifest is missing", async () => {
  const stored = await scene((web) => [podView({ name: "web", uid: web.metadata.uid })]);
  await stored.want();
  assert.equal(await stored.run(), ExitCode.done);
  assert.match(stored.printed(), /^running web on /u);
  const { files, run } = await scene(() => []);
  await files.removeTree("/state/kubelet/pods");
  await assert.rejects(run(), /^PodwrightError: no pods are stored in \/state$/u);
});

test("a pod whose manifest may be one that cannot be read is not said to be being stopped", async () => {
  const { files, run, want } = await scene(() => []);
  await want();
  const [manifest] = await files.list("/state/manifests");
  await files.write(`/state/manifests/${manifest?.name}`, "{", 0o600);
  await assert.rejects(run(), /^PodwrightError: no pods are stored/u);
});
