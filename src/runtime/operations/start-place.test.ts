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
  it("is kept from one part of a start to the next, so that it waits once", async () => {
    const clock = new ManualClock(0);
    const starts = placesOn(clock);
    const place = new StartPlace(starts, clock);
    await place.take("later", never);
    await place.take("first", never);
    assert.deepEqual(starts.load, { held: 1, waiting: 0, overdue: 0 });
    place.give();
    assert.deepEqual(starts.load, { held: 0, waiting: 0, overdue: 0 });
  });

  it("is kept while short work goes on, and given back while long work does", async () => {
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

  it("is another's when the runtime hangs, and each part of a start has its own patience", async () => {
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

  it("tells for how long it was waited for", async () => {
    const clock = new ManualClock(0);
    const starts = placesOn(clock);
    const before = await starts.take("later", never);
    using place = new StartPlace(starts, clock);
    const taking = place.take("later", never);
    await clock.advance(700);
    before[Symbol.dispose]();
    assert.equal(await taking, 700);
  });

  it("is given back when the operation ends, with its work's failure", async () => {
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
