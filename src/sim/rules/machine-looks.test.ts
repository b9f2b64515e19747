import assert from "node:assert/strict";
import { test } from "node:test";
import { Scene } from "../../../test/support/sim-scene.ts";
import { lifeStarted } from "../../journal/entry.ts";
import { machineLooks } from "./machine-looks.ts";

test("observations may be far apart, except while storage hangs", async () => {
  const scene = new Scene();
  const { node, clock, world } = scene;
  const broken: string[] = [];
  const judged = { clock, world, node, pods: node.desired, unwanted: new Map() };
  const rule = machineLooks(judged, (_rule, detail) => void broken.push(detail));
  await scene.pass(30_000);
  const look = async (afterMs: number): Promise<void> => {
    await scene.pass(afterMs);
    await node.resources.look();
  };
  await look(0);
  await look(60_000);
  node.resources.hangStorage();
  await look(10_000);
  await look(16_000);
  assert.deepEqual(broken, []);
  await look(20_000);
  assert.deepEqual(broken, ["not for 20000 ms"]);
  rule.entry?.({ kind: "observation", what: lifeStarted, message: "", seq: 1, time: 0, atMs: 0 });
  await look(60_000);
  node.resources.letStorageAnswer();
  await look(10_000);
  await look(60_000);
  assert.equal(broken.length, 1);
});
