import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { deaf, ends, runs } from "../../test/support/sim-scene.ts";
import { ShutdownScene } from "../../test/support/shutdown-scene.ts";
import { eventsOf } from "../events/entry-events.ts";
import { shutdownPeriods } from "./periods.ts";

const message = "Pod was terminated in response to imminent node shutdown.";
const byTwo = shutdownPeriods(30_000, 10_000, []);
const byThree = [
  { priority: 0, graceSeconds: 10 },
  { priority: 100, graceSeconds: 8 },
  { priority: 1000, graceSeconds: 6 },
];
const critical = 2_000_000_000;

describe("a shutdown of the node", () => {
  test("ends pods group by group, and continues as soon as a group has ended", async () => {
    const scene = new ShutdownScene(byThree);
    await scene.boot();
    scene.add("low", { containers: [runs("main")], terminationGracePeriodSeconds: 5 });
    scene.add("middle", { containers: [deaf("main")], priority: 100, terminationGracePeriodSeconds: 4 });
    scene.add("high", { containers: [runs("main")], priority: 5000 });
    await scene.pass(20_000);
    assert.equal(scene.login.locks, 1);
    scene.login.announce();
    await scene.pass(60_000);
    const { low = NaN, middle = NaN, high = NaN } = scene.terminated();
    assert.ok(low === 0 && middle > 0 && middle < 2000, `middle comes after ${middle} ms`);
    assert.ok(high >= middle + 4000 && high < middle + 6000, `high comes after ${high - middle} ms`);
    const [off] = scene.powerOffs;
    assert.equal(off?.why, "locks gone");
    assert.deepEqual(
      ["low", "middle", "high"].map((uid) => scene.runs(uid)),
      [false, false, false],
    );
    assert.ok((scene.times.at(-1)?.endMs ?? 0) > 0, "its end is told");
  });

  test("gives a hanging pod no more than its group's period, and continues with the next group", async () => {
    const scene = new ShutdownScene(byTwo);
    await scene.boot();
    scene.add("stuck", { containers: [deaf("main")], terminationGracePeriodSeconds: 3600 });
    scene.add("critical", { containers: [runs("main")], priority: critical });
    await scene.pass(20_000);
    scene.login.announce();
    await scene.pass(60_000);
    const { critical: atMs = NaN } = scene.terminated();
    assert.ok(Math.abs(atMs - 20_000) < 2000, `the critical pod's turn came after ${atMs} ms`);
    assert.equal(scene.powerOffs[0]?.why, "locks gone");
  });

  test("ends a pod that returns under its UID before it starts, and restarts it after a cancellation", async () => {
    for (const isCancelled of [false, true]) {
      const scene = new ShutdownScene([{ priority: 0, graceSeconds: 10 }]);
      await scene.boot();
      const spec = { containers: [deaf("main")], terminationGracePeriodSeconds: 39 };
      scene.add("web", spec, "file");
      await scene.pass(20_000);
      scene.node.remove("web");
      scene.add("web", spec, "file");
      await scene.pass(1000);
      const starts = scene.starts.length;
      scene.login.announce();
      await scene.pass(5000);
      assert.deepEqual(scene.terminated(), { web: 0 });
      if (isCancelled) scene.login.cancel();
      await scene.pass(15_000);
      assert.equal(scene.powerOffs.length, isCancelled ? 0 : 1, "the pod before it gets no more time than its group");
      assert.deepEqual([scene.runs("web"), scene.starts.length > starts], [isCancelled, isCancelled]);
    }
  });

  test("that is cancelled while podwright is down restarts the static pods that it ended, and no others", async () => {
    const scene = new ShutdownScene(byTwo);
    await scene.boot();
    scene.add("static", { containers: [runs("main")] }, "file");
    scene.add("bound", { containers: [runs("main")] });
    scene.add("slow", { containers: [deaf("main")], terminationGracePeriodSeconds: 600 });
    await scene.pass(20_000);
    scene.login.announce();
    await scene.pass(5000);
    assert.deepEqual(scene.told("static"), ["Failed", "Terminated"]);
    scene.node.kill();
    scene.login.cancel();
    scene.node.start();
    await scene.pass(60_000);
    assert.deepEqual([scene.told("static"), scene.runs("static")], [["Running", undefined], true]);
    assert.deepEqual([scene.told("bound"), scene.runs("bound")], [["Failed", "Terminated"], false]);
  });

  test("fails pods in upstream's words, rejects new pods, and emits an Event of the node", async () => {
    const scene = new ShutdownScene(byTwo);
    await scene.boot();
    scene.add("web", { containers: [deaf("main")], terminationGracePeriodSeconds: 10 });
    await scene.pass(20_000);
    scene.login.announce();
    await scene.pass(5000);
    scene.add("late", { containers: [runs("main")] });
    await scene.pass(2000);
    const late = scene.status("late");
    assert.deepEqual([late?.phase, late?.reason], ["Failed", "NodeShutdown"]);
    assert.equal(late?.message, "Pod was rejected: Pod was rejected as the node is shutting down.");
    assert.equal(scene.status("web")?.phase, "Running");
    await scene.pass(4000);
    const events = scene.node.entries.flatMap(eventsOf).filter(({ reason }) => reason === "Shutdown");
    assert.deepEqual(
      events.map(({ type, pod, message: words }) => [type, pod, words]),
      [["Normal", undefined, "Shutdown manager detected shutdown event"]],
    );
  });

  test("leaves pods alone that have succeeded, also over the reboot", async () => {
    const scene = new ShutdownScene(byTwo);
    await scene.boot();
    scene.add("job", { containers: [ends("main", 2000, 0)], restartPolicy: "Never" });
    scene.add("failed", { containers: [ends("main", 2000, 3)], restartPolicy: "Never" });
    scene.add("web", { containers: [deaf("main")], terminationGracePeriodSeconds: 5 });
    await scene.pass(20_000);
    const before = [scene.told("job"), scene.told("failed")];
    assert.deepEqual(before, [
      ["Succeeded", undefined],
      ["Failed", undefined],
    ]);
    scene.login.announce();
    await scene.pass(3000);
    assert.deepEqual([scene.told("job"), scene.told("failed")], before);
    await scene.pass(60_000);
    assert.deepEqual(Object.keys(scene.terminated()), ["web"]);
    await scene.boot();
    await scene.pass(60_000);
    assert.deepEqual([scene.told("job"), scene.told("failed")], before);
    assert.deepEqual([scene.runs("job"), scene.runs("failed")], [false, false]);
  });

  test("is remembered: after the reboot ended pods stay ended, and static pods run again", async () => {
    const scene = new ShutdownScene(byTwo);
    await scene.boot();
    scene.add("api", { containers: [runs("main")] });
    scene.add("static", { containers: [runs("main")] }, "file");
    await scene.pass(20_000);
    scene.login.announce();
    await scene.pass(60_000);
    assert.equal(scene.powerOffs.length, 1);
    await scene.boot();
    await scene.pass(120_000);
    const status = scene.status("api");
    assert.deepEqual([status?.phase, status?.reason, status?.message], ["Failed", "Terminated", message]);
    const disruption = status?.conditions?.find(({ type }) => type === "DisruptionTarget");
    assert.deepEqual(
      [disruption?.status, disruption?.reason, disruption?.message],
      ["True", "TerminationByKubelet", message],
    );
    assert.deepEqual([scene.runs("api"), scene.runs("static")], [false, true]);
    assert.deepEqual(scene.told("static"), ["Running", undefined]);
  });

  test("that is cancelled spares the remaining pods, restarts static pods, and may be followed by another", async () => {
    const scene = new ShutdownScene(byThree);
    await scene.boot();
    scene.add("low", { containers: [runs("main")] });
    scene.add("static", { containers: [runs("main")] }, "file");
    scene.add("stuck", { containers: [deaf("main")], terminationGracePeriodSeconds: 30 });
    scene.add("high", { containers: [runs("main")], priority: 1000 });
    await scene.pass(20_000);
    scene.login.announce();
    await scene.pass(4000);
    scene.login.cancel();
    await scene.pass(60_000);
    assert.deepEqual(scene.powerOffs, []);
    const shutdowns = scene.node.entries.filter((entry) => entry.what.startsWith("Shutdown"));
    assert.deepEqual(
      shutdowns.flatMap((entry) => eventsOf(entry).map(({ type, reason, message: words }) => [type, reason, words])),
      [
        ["Normal", "Shutdown", "Shutdown manager detected shutdown event"],
        ["Normal", "Shutdown", "Shutdown manager detected shutdown cancellation"],
      ],
    );
    const cancelled = shutdowns.find(({ what }) => what === "ShutdownCancelled");
    const restarted = scene.node.entries.filter(({ cause }) => cause?.entry === cancelled?.seq);
    assert.deepEqual([...new Set(restarted.map(({ pod }) => pod?.uid))], ["static"]);
    assert.deepEqual(scene.told("low"), ["Failed", "Terminated"]);
    assert.deepEqual([scene.told("high"), scene.runs("high")], [["Running", undefined], true]);
    assert.deepEqual([scene.told("static"), scene.runs("static")], [["Running", undefined], true]);
    scene.add("late", { containers: [runs("main")] });
    await scene.pass(20_000);
    assert.equal(scene.runs("late"), true);
    assert.equal(scene.login.locks, 1);
    scene.login.announce();
    await scene.pass(60_000);
    assert.deepEqual(
      scene.powerOffs.map(({ why }) => why),
      ["locks gone"],
    );
  });

  test("that is cancelled restarts a static pod that returned meanwhile, but not one that was removed", async () => {
    const scene = new ShutdownScene(byThree);
    await scene.boot();
    for (const uid of ["gone", "back"]) {
      scene.add(uid, { containers: [deaf("main")], terminationGracePeriodSeconds: 8 }, "file");
    }
    await scene.pass(20_000);
    scene.login.announce();
    await scene.pass(2000);
    for (const uid of ["gone", "back"]) scene.node.remove(uid);
    scene.add("back", { containers: [runs("main")] }, "file");
    await scene.pass(1000);
    const begunMs = scene.clock.nowMs;
    scene.login.cancel();
    await scene.pass(60_000);
    assert.deepEqual(
      scene.starts.flatMap(({ atMs, uid }) => (atMs > begunMs ? [uid] : [])),
      ["back", "back"],
    );
    assert.deepEqual(scene.told("gone"), [undefined, undefined]);
    assert.deepEqual([scene.told("back"), scene.runs("back")], [["Running", undefined], true]);
    assert.equal(scene.node.desired.get("back")?.spec.containers[0]?.command?.includes("deaf"), false);
    assert.equal([...scene.world.containers.values()].at(-1)?.config.command.includes("deaf"), false);
  });

  test("continues after podwright was killed in the middle of it, and starts nothing", async () => {
    const scene = new ShutdownScene(byThree);
    await scene.boot();
    scene.add("low", { containers: [runs("main")] });
    scene.add("static", { containers: [runs("main")] }, "file");
    scene.add("middle", { containers: [deaf("main")], priority: 100, terminationGracePeriodSeconds: 8 });
    scene.add("high", { containers: [runs("main")], priority: 1000 });
    await scene.pass(20_000);
    // Another program delays the shutdown.
    using _other = scene.login.lock(() => true);
    scene.login.announce();
    await scene.pass(4000);
    const killedMs = scene.clock.nowMs;
    scene.node.kill();
    await scene.pass(500);
    scene.node.start();
    await scene.pass(15_000);
    assert.deepEqual(
      ["low", "static", "middle", "high"].filter((uid) => scene.runs(uid)),
      [],
    );
    assert.deepEqual(
      scene.starts.filter(({ atMs }) => atMs > killedMs),
      [],
    );
    assert.deepEqual(scene.told("high"), ["Failed", "Terminated"]);
  });

  test("gives a group no new time when podwright was killed meanwhile, and none to earlier groups", async () => {
    for (const downMs of [500, 9000]) {
      const scene = new ShutdownScene(byThree);
      await scene.boot();
      scene.add("low", { containers: [runs("main")] });
      scene.add("middle", { containers: [deaf("main")], priority: 100, terminationGracePeriodSeconds: 60 });
      scene.add("high", { containers: [runs("main")], priority: 1000 });
      await scene.pass(20_000);
      using _other = scene.login.lock(() => true);
      scene.login.announce();
      await scene.pass(6000);
      scene.node.kill();
      await scene.pass(downMs);
      scene.node.start();
      await scene.pass(17_500 - downMs);
      const { middle = NaN, high = NaN } = scene.terminated();
      const wantedMs = Math.max(8000, 5000 + downMs);
      assert.ok(
        high - middle >= 7500 && high - middle < wantedMs + 4500,
        `high comes ${high - middle} ms after middle`,
      );
      const starts = new Set(scene.times.map(({ startMs }) => startMs));
      assert.deepEqual([scene.times[0]?.startMs, starts.size], [0, 2], "the shutdown has one start");
    }
  });

  test("starts no pod again that loses its sandbox when podwright has started in it, unless it is cancelled", async () => {
    for (const isCancelled of [false, true]) {
      const scene = new ShutdownScene(byThree);
      await scene.boot();
      scene.add("low", { containers: [deaf("main")], terminationGracePeriodSeconds: 60 });
      scene.add("high", { containers: [runs("main")], priority: 1000 });
      scene.add("job", { containers: [ends("main", 500, 0)], priority: 1000, restartPolicy: "OnFailure" });
      await scene.pass(20_000);
      using _other = scene.login.lock(() => true);
      scene.login.announce();
      await scene.pass(1000);
      scene.node.kill();
      const killedMs = scene.clock.nowMs;
      scene.node.start();
      await scene.pass(2000);
      scene.loseSandboxes("high", "job");
      await scene.pass(3000);
      const later = (): string[] => scene.starts.flatMap(({ atMs, uid }) => (atMs > killedMs ? [uid] : []));
      assert.deepEqual([later(), scene.told("high")], [[], ["Running", undefined]]);
      if (isCancelled) scene.login.cancel();
      await scene.pass(14_000);
      assert.deepEqual(later(), isCancelled ? ["high", "high"] : []);
      assert.deepEqual(scene.told("high"), isCancelled ? ["Running", undefined] : ["Failed", "Terminated"]);
      assert.deepEqual(scene.told("job"), ["Succeeded", undefined]);
    }
  });

  test("rejects a pod that has lost its sandbox before podwright started in it, and leaves one alone that had ended", async () => {
    const scene = new ShutdownScene(byThree);
    await scene.boot();
    scene.add("low", { containers: [deaf("main")], terminationGracePeriodSeconds: 60 });
    scene.add("high", { containers: [runs("main")], priority: 1000 });
    scene.add("job", { containers: [ends("main", 500, 0)], priority: 1000, restartPolicy: "OnFailure" });
    await scene.pass(20_000);
    using _other = scene.login.lock(() => true);
    scene.login.announce();
    await scene.pass(1000);
    scene.node.kill();
    scene.loseSandboxes("high", "job");
    scene.node.start();
    await scene.pass(5000);
    assert.deepEqual(scene.told("high"), ["Failed", "NodeShutdown"]);
    assert.deepEqual(scene.told("job"), ["Succeeded", undefined]);
  });

  test("is another one than that before it, which was cancelled while podwright was down", async () => {
    for (const waitMs of [0, 60_000]) {
      const scene = new ShutdownScene(byThree);
      await scene.boot();
      scene.add("low", { containers: [runs("main")] });
      await scene.pass(20_000);
      using _other = scene.login.lock(() => true);
      const announce = (): number => {
        scene.login.announce();
        return scene.clock.wallMs;
      };
      const firstMs = announce();
      await scene.pass(500);
      scene.node.kill();
      scene.login.cancel();
      await scene.pass(waitMs);
      const secondMs = announce();
      scene.node.start();
      await scene.pass(10_000);
      // One that comes at once looks like the same.
      const began = (scene.times.at(-1)?.startMs ?? 0) - (waitMs === 0 ? firstMs : secondMs);
      assert.ok(began >= 0 && began < 3000, `it begins ${began} ms after its announcement`);
    }
  });

  test("is noticed at once if it begins before podwright has its lock", async () => {
    const scene = new ShutdownScene(byTwo);
    await scene.boot();
    await scene.pass(50);
    using _another = scene.login.lock(() => true);
    scene.login.announce();
    await scene.pass(1000);
    scene.add("late", { containers: [runs("main")] });
    await scene.pass(1000);
    assert.deepEqual(scene.told("late"), ["Failed", "NodeShutdown"]);
    assert.deepEqual(scene.starts, []);
  });

  test("raises the login manager's maximum delay if it is too short", async () => {
    const scene = new ShutdownScene(byTwo);
    await scene.boot();
    await scene.pass(5000);
    assert.equal(scene.login.delayMaxMs, 30_000);
    const written = await scene.node.files.read("/etc/systemd/logind.conf.d/99-kubelet.conf", 1000);
    assert.match(new TextDecoder().decode(written), /^\[Login\]\nInhibitDelayMaxSec=30$/mu);
  });
});
