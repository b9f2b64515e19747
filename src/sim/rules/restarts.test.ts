import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ends, podOf, Scene } from "../../../test/support/sim-scene.ts";
import { Restarts } from "./restarts.ts";

/**
 * The wall clock goes back between the decision to restart and the start; podwright is killed after a delay; and the
 * started container exits after its back-off would have expired. Returns the wait before the next restart.
 */
async function waitsAfterJump(aliveMs: number): Promise<{ waitMs: number; problems: readonly string[] }> {
  const scene = new Scene();
  const { clock, node, world } = scene;
  using _watch = world.onChange(({ type, container }) => {
    if (type !== "started" || container?.config.metadata?.attempt !== 1) return;
    clock.jumpWall(-876_425);
    clock.schedule("kill", aliveMs, () => node.kill());
  });
  const problems = scene.judge((of, broken) => new Restarts(of, broken));
  node.add(podOf({ restartPolicy: "Always", containers: [ends("c", 700_000, 1)] }));
  await scene.pass(900_000);
  assert.equal(scene.at("started c").length, 2);
  node.start();
  await scene.pass(540_000);
  const [, exitedMs = Number.NaN] = scene.at("exited c");
  const [, , startedMs = Number.NaN] = scene.at("started c");
  return { waitMs: startedMs - exitedMs, problems };
}

describe("a wall clock set back just after a restart was decided", () => {
  test("does not delay, in the next run, containers that ran for long enough", async () => {
    const { waitMs, problems } = await waitsAfterJump(10_000);
    assert.ok(waitMs < 5000, `${waitMs} ms`);
    assert.deepEqual(problems, []);
  });

  test("is not podwright's fault if it was killed before it could record that", async () => {
    const { waitMs, problems } = await waitsAfterJump(0);
    assert.ok(waitMs >= 10_000 && waitMs < 15_000, `${waitMs} ms`);
    assert.deepEqual(problems, []);
  });
});
