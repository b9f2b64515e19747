import assert from "node:assert/strict";
import { test } from "node:test";
import { ends, podOf, Scene } from "../../../test/support/sim-scene.ts";
import { FileError } from "../../ports/files.ts";
import { askCollection } from "./user-requests.ts";

test("a completed pod without containers does not run again when its checkpoint cannot be read at first", async () => {
  const scene = new Scene();
  const { node } = scene;
  node.add(podOf({ restartPolicy: "OnFailure", containers: [ends("job", 5000, 0)] }));
  await scene.pass(20_000);
  node.ask(askCollection);
  await scene.pass(5000);
  assert.deepEqual([scene.status()?.phase, scene.world.containers.size], ["Succeeded", 0]);
  node.kill();
  const read = node.files.read.bind(node.files);
  const failsUntilMs = scene.clock.nowMs + 1000;
  node.files.read = async (path, maxBytes) => {
    const fails = path.endsWith("/podwright.json") && scene.clock.nowMs < failsUntilMs;
    if (fails) throw new FileError("EIO", path, "i/o error");
    return await read(path, maxBytes);
  };
  node.start();
  await scene.pass(60_000);
  assert.deepEqual([scene.at("started job").length, scene.status()?.phase], [1, "Succeeded"]);
});
