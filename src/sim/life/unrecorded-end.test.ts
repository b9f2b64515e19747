import assert from "node:assert/strict";
import { test } from "node:test";
import { ends, podOf, Scene } from "../../../test/support/sim-scene.ts";
import { askCollection } from "./user-requests.ts";

test("the containers of an ended pod stay while its end cannot be recorded, and the pod never runs again", async () => {
  const scene = new Scene();
  scene.node.add(podOf({ restartPolicy: "Never", containers: [ends("job", 5000, 0)] }));
  await scene.pass(4000);
  scene.faults.begin({ diskFull: true }, 60_000);
  await scene.pass(20_000);
  assert.equal(scene.status()?.phase, "Succeeded");
  scene.node.ask(askCollection);
  await scene.pass(5000);
  assert.deepEqual([scene.at("removed job"), scene.world.containers.size], [[], 1]);
  scene.node.kill();
  scene.node.start();
  await scene.pass(120_000);
  scene.node.ask(askCollection);
  await scene.pass(5000);
  assert.equal(scene.at("removed job").length, 1, "the disk has room again");
  scene.node.kill();
  scene.node.start();
  await scene.pass(60_000);
  assert.deepEqual([scene.at("started job").length, scene.status()?.phase], [1, "Succeeded"]);
});
