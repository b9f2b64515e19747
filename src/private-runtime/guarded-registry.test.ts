import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { onAbort } from "../base/abort.ts";
import { runWhileTaken } from "./guarded-registry.ts";

class FakePlace {
  #taken = Promise.withResolvers<void>();
  #left = new AbortController();

  get taken(): Promise<void> {
    return this.#taken.promise;
  }

  get left(): AbortSignal {
    return this.#left.signal;
  }

  take(): void {
    this.#left = new AbortController();
    this.#taken.resolve();
  }

  leave(): void {
    this.#taken = Promise.withResolvers();
    this.#left.abort(new Error("left"));
  }
}

test("plugins register while the place is taken; those of the time in which a kubelet was there unseen are dropped", async () => {
  const clock = new ManualClock();
  const place = new FakePlace();
  const told: string[] = [];
  const registry = {
    run: async (signal: AbortSignal): Promise<void> => {
      const ended = Promise.withResolvers<void>();
      told.push("run");
      using _abort = onAbort(signal, ended.resolve);
      await ended.promise;
      told.push("end");
    },
    drop: (sinceMs: number, why: string): void => void told.push(`drop from ${sinceMs}: ${why}`),
  };
  const stop = new AbortController();
  const running = runWhileTaken(registry, place, { freeAtMs: 42 }, stop.signal);
  const becomes = async (...expected: string[]): Promise<void> => {
    await clock.advance(1000);
    assert.deepEqual(told.splice(0), expected);
  };
  await becomes();
  place.take();
  await becomes("run");
  place.leave();
  await becomes("end", "drop from 42: a kubelet has started at the place, and it may be a plugin of that one");
  place.take();
  await becomes("run");
  stop.abort();
  await becomes("end");
  await running;
});
