import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../base/ids.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { containerView, podView } from "../../test/support/pod-views.ts";
import { systemHashing } from "../linux/files/hashing.ts";
import { runtimeLayout } from "../private-runtime/layout.ts";
import { keepSpec } from "../runtime/layout/kept-spec.ts";
import type { PodView } from "../server/local-api.ts";
import { MemoryFiles } from "../sim/files.ts";
import { EngineClient } from "./engine-client.ts";
import { findLog, type LogTarget } from "./log-target.ts";
import { Terminal } from "./terminal.ts";

const layout = runtimeLayout("/var/lib/podwright", systemHashing);

/** The found log, and the notices on standard error. @param pods of the engine, which resolves names to the first; none: no engine runs */
async function found(
  pods: readonly PodView[],
  selector: string,
  asked?: string,
  files = new MemoryFiles(new ManualClock()),
): Promise<LogTarget & { readonly said: string }> {
  let said = "";
  const write = (text: string | Uint8Array): boolean => {
    said += String(text);
    return true;
  };
  const terminal = new Terminal({ write: () => true }, { write }, {});
  const request = async (_method: string, path: string): Promise<{ status: number; body: string }> => {
    if (pods.length === 0) throw Object.assign(new Error("nobody listens"), { code: "ENOENT" });
    const name = path.replace("/v1/pods", "").slice(1);
    const pod = pods.find(({ uid }) => uid === name) ?? pods[0];
    return { status: 200, body: JSON.stringify(name === "" ? pods : pod) };
  };
  const engine = new EngineClient({ request, lines: () => assert.fail("not asked for") }, layout.stateDirectory);
  const target = await findLog({ engine, files, terminal, layout }, selector, asked, false);
  return { ...target, said };
}

const app = containerView({ name: "app", logPath: "/logs/app" });
const side = containerView({ name: "side", logPath: "/logs/side" });

test("the default container is the annotation's, else the first, with a notice", async () => {
  const web = podView({ containers: [app, side] });
  const annotated = await found([{ ...web, defaultContainer: "side" }], "web");
  assert.deepEqual([annotated.path, annotated.said], ["/logs/side", ""]);
  const first = await found([web], "web");
  assert.deepEqual([first.path, first.said], ["/logs/app", 'Defaulted container "app" out of: app, side\n']);
  assert.equal((await found([{ ...web, defaultContainer: "side" }], "web", "app")).path, "/logs/app");
});

test("until a replacing pod has started, its name selects the log of the replaced one; UIDs select either", async () => {
  const waiting = containerView({ state: "waiting", startedAt: undefined, logPath: "/logs/new" });
  const coming = podView({ uid: podUid("new"), phase: "Pending", ready: false, containers: [waiting] });
  const going = podView({ uid: podUid("old"), state: "terminating", containers: [app] });
  const target = await found([coming, going], "web");
  assert.deepEqual([target.path, target.uid], ["/logs/app", "old"]);
  assert.match(target.said, /pod web \(uid new\) has not started; showing the pod that it replaces, uid old/u);
  assert.equal((await found([coming, going], "old")).path, "/logs/app");
  const unbegun = { ...coming, containers: [{ ...waiting, logPath: "" }] };
  await assert.rejects(found([unbegun, going], "new"), /container app has not started yet/u);
  const begun = { ...coming, containers: [{ ...waiting, state: "running" as const, startedAt: 1 }] };
  const shown = await found([begun, going], "web");
  assert.deepEqual([shown.path, shown.uid, shown.said], ["/logs/new", "new", ""]);
});

test("the log of an ended pod went with its container, that of a waiting one is to come", async () => {
  const ended = containerView({ name: "app", state: "terminated", reason: "Completed", logPath: "" });
  const collected = podView({ phase: "Succeeded", ready: false, containers: [ended] });
  await assert.rejects(found([collected], "web"), /the log of container app is gone/u);
  assert.equal((await found([podView({ phase: "Failed", containers: [app] })], "web")).isOfEndedPod, true);
  assert.equal((await found([podView({ containers: [app] })], "web")).isOfEndedPod, false);
});

test("without an engine the kept spec defines the order of containers and the default one", async () => {
  const files = new MemoryFiles(new ManualClock());
  for (const name of ["app", "b-first"]) {
    const directory = `/var/log/pods/default_web_uid-web/${name}`;
    await files.makeDirectory(directory, 0o755);
    await files.write(`${directory}/0.log`, "", 0o600);
  }
  assert.equal((await found([], "web", undefined, files)).container, "app");
  const metadata = { name: "web", namespace: "default", uid: podUid("uid-web") };
  const spec = { containers: [{ name: "b-first" }, { name: "app" }] };
  // A kubelet's root directory contains its state directory.
  await files.makeDirectory("/var/lib/pods/uid-web", 0o755);
  await keepSpec(files, { rootDirectory: "/var/lib" }, { metadata, spec }, "start");
  assert.equal((await found([], "web", undefined, files)).container, "b-first");
  const annotations = { "kubectl.kubernetes.io/default-container": "app" };
  await keepSpec(files, { rootDirectory: "/var/lib" }, { metadata: { ...metadata, annotations }, spec }, "start");
  const { container, said } = await found([], "web", undefined, files);
  assert.equal(container, "app");
  assert.doesNotMatch(said, /Defaulted/u);
});
