import assert from "node:assert/strict";
import { test } from "node:test";
import { ends, podOf, runs, Scene } from "../../../test/support/sim-scene.ts";
import { hookCommand } from "../behaviour.ts";
import { StartOrder } from "./start-order.ts";

test("in each sandbox of a pod with init containers, the others start one after the other, hooks included", async () => {
  const scene = new Scene();
  const problems = scene.judge((of, broken) => new StartOrder(of, broken));
  const postStart = { exec: { command: hookCommand({ kind: "postStart", exitCode: 0, durationMs: 5000 }) } };
  const containers = [runs("a", { lifecycle: { postStart } }), runs("b"), runs("c")];
  scene.node.add(podOf({ initContainers: [ends("init", 1000, 0)], containers }));
  for (const round of [0, 1, 2]) {
    await scene.pass(30_000);
    const [a = 0, b = 0, c = 0] = ["a", "b", "c"].map((name) => scene.at(`started ${name}`)[round] ?? Number.NaN);
    assert.ok(b >= a + 5000 && c > b, `started at ${a}, ${b}, ${c} ms in sandbox ${round}`);
    scene.world.stopSandbox(scene.container("a").sandboxId);
  }
  assert.deepEqual(problems, []);
});
