import assert from "node:assert/strict";
import { test } from "node:test";
import { StartUp } from "./start-up.ts";

test("a start proceeds from stage to stage, never back", () => {
  const startUp = new StartUp();
  assert.equal(startUp.has("unlisted"), true);
  assert.equal(startUp.has("listed"), false);
  startUp.reach("listed");
  startUp.reach("sourcesSeen");
  startUp.reach("listed");
  assert.deepEqual([startUp.has("listed"), startUp.has("sourcesSeen"), startUp.has("allKnown")], [true, true, false]);
});

test("a stage can't be skipped", () => {
  const startUp = new StartUp();
  assert.throws(() => startUp.reach("sourcesSeen"), /unlisted to sourcesSeen/u);
});

test("a waiter for a stage continues when it is reached, or at once if it has passed", async () => {
  const startUp = new StartUp();
  const heard: string[] = [];
  const waits = (["listed", "allKnown"] as const).map(async (stage) => {
    await startUp.when(stage);
    heard.push(stage);
  });
  startUp.reach("listed");
  await waits[0];
  assert.deepEqual(heard, ["listed"]);
  startUp.reach("sourcesSeen");
  startUp.reach("allKnown");
  await Promise.all(waits);
  assert.deepEqual(heard, ["listed", "allKnown"]);
  await startUp.when("listed");
});
