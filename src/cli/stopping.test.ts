import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { podView } from "../../test/support/pod-views.ts";
import { podUid } from "../base/ids.ts";
import { systemHashing } from "../linux/files/hashing.ts";
import { runtimeLayout } from "../private-runtime/layout.ts";
import { engineFailure } from "./engine-process.ts";
import type { Health, PodView } from "../server/local-api.ts";
import { EngineClient } from "./engine-client.ts";
import type { EngineSession } from "./engine-session.ts";
import { requestStop, servedLines, stoppingLine, waitUntilGone } from "./stopping.ts";
import { Terminal } from "./terminal.ts";

/** An engine with these pods. */
class Engine {
  readonly asked: string[] = [];
  readonly clock = new ManualClock();
  readonly pods: PodView[];
  health: Partial<Health> = { knowsAllPods: true };
  refused: string | undefined;

  constructor(...pods: PodView[]) {
    this.pods = pods;
  }

  async stop(pods: readonly PodView[], signal = AbortSignal.any([])): Promise<void> {
    const request = async (_method: string, path: string): Promise<{ status: number; body: string }> => {
      this.asked.push(path);
      if (path === "/v1/health") return { status: 200, body: JSON.stringify(this.health) };
      if (path === "/v1/pods") return { status: 200, body: JSON.stringify(this.pods) };
      const pod = this.pods.find(({ uid }) => path === `/v1/pods/${uid}/stop`);
      if (pod !== undefined && pod.uid !== this.refused) return { status: 200, body: JSON.stringify(pod) };
      return { status: 400, body: JSON.stringify({ error: "no", exitCode: 2 }) };
    };
    const engine = new EngineClient({ request, lines: () => assert.fail("not asked for") }, "/s");
    const call: EngineSession["call"] = (work) => work(engine);
    const layout = runtimeLayout("/s", systemHashing);
    await requestStop({ clock: this.clock, layout }, { call }, pods, { graceSeconds: undefined, signal });
  }
}

const web = podView({ uid: podUid("web") });
const db = podView({ name: "db", uid: podUid("db") });

test("pods are stopped with one request each, and a missing one is not an error", async () => {
  const engine = new Engine(web);
  await engine.stop([web]);
  assert.deepEqual(engine.asked, ["/v1/pods/web/stop"]);
  await engine.stop([db, web]);
  assert.deepEqual(engine.asked.slice(1).toSorted(), [
    ...["/v1/health", "/v1/pods", "/v1/pods/db/stop", "/v1/pods/web/stop"],
  ]);
});

test("a rejected stop is an error, and that of a pod that the engine does not know yet is retried", async () => {
  const engine = new Engine(web);
  engine.refused = "web";
  await assert.rejects(engine.stop([web]), /^PodwrightError: no$/u);
  engine.health = { knowsAllPods: false };
  let isDone = false;
  const stopped = engine.stop([db]).then(() => (isDone = true));
  await engine.clock.advance(1000);
  assert.equal(isDone, false);
  engine.pods.push(db);
  await engine.clock.advance(1000);
  await stopped;
  const interrupt = new AbortController();
  engine.pods.pop();
  const waiting = engine.stop([db], interrupt.signal);
  waiting.catch(() => {});
  await engine.clock.advance(1000);
  interrupt.abort(new Error("interrupted"));
  await assert.rejects(waiting, /interrupted/u);
});

test("a pod that the engine will never know is given up, with what is in the way", async () => {
  const engine = new Engine(web);
  engine.health = { knowsAllPods: false, unlisted: [db.uid] };
  const stopped = assert.rejects(engine.stop([db]), /^PodwrightError: the engine has not found all running pods yet$/u);
  for (let second = 0; second < 61; second++) await engine.clock.advance(1000);
  await stopped;
});

test("a stopped driver's users are named unless they are stopped, too", () => {
  const driver = podView({ name: "driver", serves: [web, db] });
  const line = "driver serves CSI volumes of web, whose end will wait until a driver runs again";
  assert.deepEqual(servedLines([driver, db]), [line]);
  assert.deepEqual(servedLines([web, driver, db]), []);
  assert.deepEqual(servedLines([web]), []);
});

test("the countdown shows the seconds until SIGKILL, then that it was sent, then the clean-up", () => {
  const pod = podView({ state: "terminating", killAt: 30_000 });
  assert.equal(stoppingLine(pod, 2_100), "stopping web: 28 s until SIGKILL");
  assert.equal(stoppingLine(pod, 30_000), "stopping web: SIGKILL is sent");
  assert.equal(stoppingLine({ ...pod, killAt: undefined }, 0), "stopping web");
  assert.equal(stoppingLine({ ...pod, state: "terminated" }, 0), "stopping web: cleaning up");
});

test("a pod whose driver is away is said to wait for it, since when, and what to do", () => {
  const holdout =
    "volume disk (d) cannot be unpublished: driver name d not found in the list of registered CSI drivers";
  const awayDrivers = [{ name: "d", since: 1000, isRegistered: false }];
  const pod = podView({ state: "terminated", holdout, awayDrivers });
  const remedy =
    "driver d has been away for 2 min: start it again; until then the pod stays, and podwright keeps trying";
  assert.equal(stoppingLine(pod, 130_000), `stopping web: ${holdout}; ${remedy}`);
  const told = new Set<string>();
  const lines = [pod, { ...pod, name: "db" }].map((view) => stoppingLine(view, 130_000, told));
  assert.deepEqual(lines, [`stopping web: ${holdout}; ${remedy}`, `stopping db: ${holdout}`]);
  const silent = { ...pod, awayDrivers: [{ name: "d", since: 1000, isRegistered: true }] };
  assert.match(stoppingLine(silent, 130_000, told), /; driver d has not answered for 2 min: /u);
});

test("on the narrowest terminal the wait for pods ends, too", async () => {
  let printed = "";
  const write = (text: string | Uint8Array): boolean => Boolean((printed += String(text)));
  const stream = { isTTY: true, columns: 1, write };
  const clock = new ManualClock();
  const layout = runtimeLayout("/s", systemHashing);
  const terminal = new Terminal(stream, stream, { NO_COLOR: "1" });
  let pods: readonly PodView[] = [web];
  const engine: unknown = { health: async () => ({ knowsAllPods: true }), pods: async () => pods };
  const call: EngineSession["call"] = (work) => work(engine as EngineClient);
  const options = { quiet: false, signal: AbortSignal.any([]) };
  const waited = waitUntilGone({ clock, layout, terminal }, { call }, [web], options);
  await clock.advance(0);
  assert.notEqual(printed, "");
  pods = [];
  for (let step = 0; step < 5; step++) await clock.advance(200);
  await waited;
  assert.match(printed, /web is stopped/u);
});

test("the error for an engine that does not start is its own, or the end of its log", () => {
  const own = engineFailure(
    '{"level":"info"}\npodwright: the runtime is used by kubelet 12\n  → stop it\n',
    "/s/engine.log",
  );
  assert.equal(own.message, "the engine did not start: the runtime is used by kubelet 12");
  assert.equal(own.exitCode, 3);
  assert.equal(own.remedy, "stop it");
  const crash = engineFailure("a\nb\nc\nd\ne\nError: boom\u001b[2J\n", "/s/engine.log");
  assert.equal(
    crash.message,
    String.raw`the engine did not start: b
  c
  d
  e
  Error: boom\u001b[2J`,
  );
  assert.equal(engineFailure("", "/s/engine.log").message, "the engine did not start");
});
