import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Semaphore } from "../base/semaphore.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { StartPlace } from "./start-place.ts";

const never = new AbortController().signal;

describe("a place among the starts", () => {
  it("is kept from one part of a start to the next, so that it waits once", async () => {
    const starts = new Semaphore(1);
    const place = new StartPlace(starts, new ManualClock(0));
    await place.take("later", never);
    await place.take("first", never);
    assert.deepEqual(starts.load, { held: 1, waiting: 0 });
    place.give();
    assert.deepEqual(starts.load, { held: 0, waiting: 0 });
  });

  it("is kept while short work goes on, and given back while long work does", async () => {
    const clock = new ManualClock(0);
    const starts = new Semaphore(1);
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

  it("tells for how long it was waited for", async () => {
    const clock = new ManualClock(0);
    const starts = new Semaphore(1);
    const before = await starts.acquire();
    using place = new StartPlace(starts, clock);
    const taking = place.take("later", never);
    await clock.advance(700);
    before[Symbol.dispose]();
    assert.equal(await taking, 700);
  });

  it("is given back when the operation ends, with its work's failure", async () => {
    const starts = new Semaphore(1);
    const run = async (): Promise<void> => {
      using place = new StartPlace(starts, new ManualClock(0));
      await place.take("later", never);
      await place.during("a look", Promise.reject(new Error("no such image")));
    };
    await assert.rejects(run(), /no such image/);
    assert.equal(starts.load.held, 0);
  });
});
