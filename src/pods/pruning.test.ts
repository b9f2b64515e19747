import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ends, podOf, runs, Scene } from "../../test/support/sim-scene.ts";
import { healthPath } from "../sim/health.ts";

/** The next removal of a container takes as long as its call may take, about two minutes. */
function holdNextRemoval(scene: Scene): void {
  let isHeld = false;
  scene.world.holdsUnstarted = () => {
    const holds = !isHeld;
    isHeld = true;
    return holds;
  };
}

/** A pod that has dead containers to remove after 12 s, the first of which hangs until 130 s. */
async function hanging(more: Parameters<typeof podOf>[0]["containers"] = []): Promise<Scene> {
  const scene = new Scene();
  holdNextRemoval(scene);
  scene.node.add(podOf({ containers: [ends("c", 1000, 1), ...more], terminationGracePeriodSeconds: 5 }));
  await scene.pass(13_000);
  const removals = scene.entries("RemoveContainer").map(({ kind }) => kind);
  assert.deepEqual(removals, ["action"], "it does not answer");
  return scene;
}

describe("while the removal of a dead container hangs", () => {
  test("its pod's containers are restarted, stopped for their probes, and reported as usual", async () => {
    const sickness = { afterMs: 20_000, untilMs: 1e9, cycleMs: 1e9, manner: "errs" } as const;
    const path = healthPath("uid-1", "sick", "liveness", sickness);
    const livenessProbe = { httpGet: { port: 80, path }, periodSeconds: 1, failureThreshold: 1 };
    const scene = await hanging([runs("sick", { livenessProbe })]);
    await scene.pass(30_000);
    const [, , , fourth = Number.NaN] = scene.at("started c");
    assert.ok(fourth > 30_000 && fourth < 35_000, `restarted at ${fourth} ms`);
    const [stopped = Number.NaN] = scene.at("stopping sick");
    assert.ok(stopped > 20_000 && stopped < 24_000, `stopped at ${stopped} ms`);
    const counts = scene.status()?.containerStatuses?.map(({ restartCount }) => restartCount);
    assert.deepEqual(counts, [3, 1]);
    assert.deepEqual(scene.at("removed c"), []);
  });

  test("no other removal begins in the pod; what has accumulated goes when it has ended", async () => {
    const scene = await hanging();
    await scene.pass(80_000);
    assert.ok(scene.at("exited c").length >= 5);
    assert.equal(scene.entries("RemoveContainer").length, 1);
    await scene.pass(90_000);
    const dead = [...scene.world.containers.values()].filter(({ state }) => state === "exited");
    assert.equal(dead.length, 1);
  });

  test("its pod ends and is removed at once, and the removal is called off", async () => {
    const scene = await hanging();
    scene.node.remove("uid-1");
    await scene.pass(10_000);
    assert.equal(scene.entries("PodFinished").length, 1);
    assert.equal(scene.world.containers.size, 0);
    const [outcome] = scene.entries("RemoveContainer").filter(({ kind }) => kind === "outcome");
    assert.equal(outcome?.result, "unknown");
  });

  test("podwright stops and finds what is left in the next run", async () => {
    const scene = await hanging();
    scene.node.kill();
    await scene.pass(1000);
    scene.node.start();
    await scene.pass(60_000);
    const removed = scene.entries("RemoveContainer").filter(({ result }) => result === "done");
    assert.ok(removed.length >= 1);
  });
});
