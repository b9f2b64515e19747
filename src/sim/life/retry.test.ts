import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../../base/ids.ts";
import { DriverScene, podWithVolumes } from "../../../test/support/sim-driver-scene.ts";
import { ends, podOf, runs, Scene } from "../../../test/support/sim-scene.ts";
import { soundDriver } from "../csi/driver-faults.ts";
import { askRetry } from "./user-requests.ts";

test("a container in crash-loop back-off starts at once on request, and waits longer after its next exit", async () => {
  const scene = new Scene();
  scene.node.add(podOf({ containers: [ends("crash", 1000, 1)] }));
  await scene.pass(5000);
  assert.equal(scene.at("started crash").length, 2, "at once the first time, then after 10 s");
  scene.node.ask((asked) => askRetry(asked, podUid("uid-1")));
  await scene.pass(1000);
  assert.equal(scene.at("started crash").length, 3);
  await scene.pass(19_000);
  assert.equal(scene.at("started crash").length, 3, "the next wait is of 20 s");
  await scene.pass(5000);
  assert.equal(scene.at("started crash").length, 4);
});

test("an image pull in back-off starts at once on request", async () => {
  const scene = new Scene();
  scene.node.add(podOf({ containers: [runs("web", { image: "missing:1" })] }));
  await scene.pass(60_000);
  const pulls = (): number =>
    scene.node.entries.filter(({ kind, what }) => kind === "action" && what === "PullImage").length;
  const before = pulls();
  scene.node.ask((asked) => askRetry(asked, podUid("uid-1")));
  await scene.pass(8000);
  assert.equal(pulls(), before + 1);
  scene.node.ask((asked) => askRetry(asked, podUid("uid-1")));
  await scene.pass(10_000);
  assert.equal(pulls(), before + 2, "and then waits again");
});

test("a volume in back-off is set up at once on request", async () => {
  const scene = new DriverScene();
  const { node } = scene;
  node.start();
  await scene.pass(30_000);
  for (const driver of node.drivers.all) driver.faults = { ...soundDriver, refuses: 1 };
  for (const name of ["a", "b"]) scene.cluster.want(podWithVolumes(name, "inline"));
  // The next attempt is due 63 s after the first.
  await scene.pass(40_000);
  for (const driver of node.drivers.all) driver.faults = soundDriver;
  await scene.pass(5000);
  assert.ok(!scene.runs("uid-a") && !scene.runs("uid-b"));
  node.ask((asked) => askRetry(asked, podUid("uid-a")));
  await scene.pass(5000);
  assert.ok(scene.runs("uid-a"));
  assert.ok(!scene.runs("uid-b"), "nobody asked for that");
  assert.deepEqual(await scene.problems(), []);
});
