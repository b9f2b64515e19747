import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith, thresholdOf } from "../../test/support/eviction.ts";
import { EvictionScene } from "../../test/support/eviction-scene.ts";
import type { Cause } from "../journal/entry.ts";
import type { Ending } from "../pods/ending.ts";

const cause: Cause = { code: "Preempting", message: "Preempted in order to admit critical pod" };

/** Two pods of which the first ranks first and is being stopped; memory is short. */
function sceneWith(graceSeconds: number, ending?: Omit<Ending, "graceSeconds">): EvictionScene {
  const scene = new EvictionScene();
  scene.add(podWith("stopping"), 500);
  scene.add(podWith("innocent"), 10);
  scene.stops("stopping", graceSeconds, ending);
  scene.short();
  return scene;
}

test("a pod that is being stopped is evicted like any other, with less time, and waited for", async () => {
  for (const ending of [undefined, { cause, outcome: "failed", lasts: true } as const]) {
    const scene = sceneWith(3600, ending);
    await scene.play(async () => {
      assert.deepEqual(scene.victims, ["stopping"]);
      await scene.clock.advance(30_000);
      assert.deepEqual(scene.victims, ["stopping"], "it is not gone yet");
      scene.gone("stopping");
      await scene.clock.advance(1000);
      assert.deepEqual(scene.victims, ["stopping", "innocent"]);
    });
    assert.equal(scene.killed[0]?.ending.graceSeconds, 1);
    assert.equal(scene.killed[0].ending.cause.code, "Evicted");
  }
});

test("one that nothing can kill does not hold up the eviction of others", async () => {
  const scene = sceneWith(-10);
  await scene.play(async () => {
    assert.deepEqual(scene.victims, ["innocent"]);
  });
  const evicted = sceneWith(3600);
  await evicted.play(async () => {
    await evicted.clock.advance(32_000);
    assert.deepEqual(evicted.victims, ["stopping", "innocent"], "it was evicted, and is still there");
  });
});

test("a pod that has completed, or that no source has any more, is stopped in its own time", async () => {
  const completed = sceneWith(3600, { cause, outcome: "asContainers", lasts: true });
  const orphaned = sceneWith(3600);
  orphaned.forgotten.add("stopping");
  for (const scene of [completed, orphaned]) {
    await scene.play(async () => {
      assert.deepEqual(scene.victims, ["innocent"]);
    });
  }
});

test("for a soft threshold a pod that stops as soon by itself is waited for", async () => {
  const scene = new EvictionScene({ thresholds: [thresholdOf("memory.available", "100Mi", 20_000)] });
  scene.add(podWith("stopping"), 500);
  scene.add(podWith("innocent"), 10);
  await scene.play(async () => {
    scene.short();
    await scene.clock.advance(15_000);
    scene.stops("stopping", 30);
    await scene.clock.advance(25_000);
    assert.deepEqual(scene.victims, []);
    await scene.clock.advance(20_000);
    assert.deepEqual(scene.victims, ["innocent"], "its time is over, and it is still there");
  });
});
