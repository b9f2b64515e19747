import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { Places } from "../../base/places.ts";
import { StartPlace } from "./start-place.ts";

const never = new AbortController().signal;

function placesOn(clock: ManualClock): Places {
  return new Places({ clock }, { kind: "a start", limit: 1, patienceMs: 2000 });
}

describe("a place among the starts", () => {
  it("is kept between the parts of a start, so that it waits only once", async () => {
    const clock = new ManualClock(0);
    const starts = placesOn(clock);
    const place = new StartPlace(starts, clock);
    await place.take("later", never);
    await place.take("first", never);
    assert.deepEqual(starts.load, { held: 1, waiting: 0, overdue: 0 });
    place.give();
    assert.deepEqual(starts.load, { held: 0, waiting: 0, overdue: 0 });
  });

  it("is kept during short work, and released during long work", async () => {
    const clock = new ManualClock(0);
    const starts = placesOn(clock);
    using place = new StartPlace(starts, clock);
    await place.take("later", never);
    assert.equal(await place.during("a look", Promise.resolve("there")), "there");
    assert.equal(starts.load.held, 1);
    const pull = Promise.withResolvers<void>();
    const pulling = place.during("a pull", pull.promise);
    await clock.advance(1_000);
    assert.equal(starts.load.held, 0, "another may start meanwhile");
    pull.resolve();
    await pulling;
    await place.take("first", never);
    assert.equal(starts.load.held, 1);
  });

  it("passes to another start if the runtime hangs, with a time limit for each part of a start", async () => {
    const clock = new ManualClock(0);
    const starts = placesOn(clock);
    using place = new StartPlace(starts, clock);
    await place.take("later", never);
    await clock.advance(1_500);
    assert.equal(await place.take("first", never), 0);
    await clock.advance(1_500);
    assert.equal(starts.load.held, 1);
    await clock.advance(500);
    assert.deepEqual(starts.load, { held: 0, waiting: 0, overdue: 1 });
    assert.equal(await place.take("first", never), 0, "what goes on late waits for nothing more");
  });

  it("reports how long a start waited for it", async () => {
    const clock = new ManualClock(0);
    const starts = placesOn(clock);
    const before = await starts.take("later", never);
    using place = new StartPlace(starts, clock);
    const taking = place.take("later", never);
    await clock.advance(700);
    before[Symbol.dispose]();
    assert.equal(await taking, 700);
  });

  it("is released when the operation ends, even by a failure", async () => {
    const clock = new ManualClock(0);
    const starts = placesOn(clock);
    const run = async (): Promise<void> => {
      using place = new StartPlace(starts, clock);
      await place.take("later", never);
      await place.during("a look", Promise.reject(new Error("no such image")));
    };
    await assert.rejects(run(), /no such image/);
    assert.equal(starts.load.held, 0);
  });
});
