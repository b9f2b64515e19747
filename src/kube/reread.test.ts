import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { Reread } from "./reread.ts";

describe("Reread", () => {
  class World {
    readonly clock = new ManualClock();
    now: string | undefined = "a";
    reads = 0;
    readonly text = new Reread(this.clock, async () => {
      this.reads++;
      if (this.now === undefined) throw new Error("no good");
      return this.now;
    });
  }

  test("reads again after a minute, once for all concurrent requests", async () => {
    const world = new World();
    assert.deepEqual(await Promise.all([world.text.get(), world.text.get()]), ["a", "a"]);
    world.now = "b";
    await world.clock.advance(59_999);
    assert.deepEqual([await world.text.get(), world.reads], ["a", 1]);
    await world.clock.advance(1);
    assert.deepEqual([await world.text.get(), world.reads], ["b", 2]);
  });

  test("invalid content keeps the last valid one, and is reread after a second", async () => {
    const world = new World();
    await world.text.get();
    world.now = undefined;
    await world.clock.advance(60_000);
    assert.deepEqual([await world.text.get(), await world.text.get(), world.reads], ["a", "a", 2]);
    world.now = "b";
    await world.clock.advance(1000);
    assert.equal(await world.text.get(), "b");
  });

  test("without any valid content it is read for each request", async () => {
    const world = new World();
    world.now = undefined;
    await assert.rejects(world.text.get(), /no good/);
    world.now = "a";
    assert.equal(await world.text.get(), "a");
  });

  test("rejected content is reread at once, doubted content within a second", async () => {
    const world = new World();
    await world.text.get();
    world.now = "b";
    world.text.expire();
    assert.equal(await world.text.get(), "b");
    world.now = "c";
    world.text.doubt();
    await world.clock.advance(999);
    world.text.doubt();
    assert.equal(await world.text.get(), "b");
    await world.clock.advance(1);
    assert.equal(await world.text.get(), "c");
  });
});
