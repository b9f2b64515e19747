import assert from "node:assert/strict";
import { test } from "node:test";
import { settle } from "../../test/support/manual-clock.ts";
import { SharedWork } from "./shared-work.ts";

function world() {
  const shared = new SharedWork<number>();
  const started: Array<{
    readonly end: (value: number) => void;
    readonly fail: (error: Error) => void;
    readonly signal: AbortSignal;
  }> = [];
  const join = (signal: AbortSignal = new AbortController().signal): Promise<number> =>
    shared.join(
      "key",
      (workSignal) => {
        const { promise, resolve, reject } = Promise.withResolvers<number>();
        started.push({ end: resolve, fail: reject, signal: workSignal });
        return promise;
      },
      signal,
    );
  return { started, join };
}

test("callers share work in progress; later ones start it again", async () => {
  const { started, join } = world();
  const both = [join(), join()];
  assert.equal(started.length, 1);
  started[0]?.end(7);
  assert.deepEqual(await Promise.all(both), [7, 7]);
  await settle();
  const third = join();
  assert.equal(started.length, 2);
  started[1]?.end(8);
  assert.equal(await third, 8);
});

test("a waiter's signal ends its own wait at once, and the work only with the last one", async () => {
  const { started, join } = world();
  const [first, second] = [new AbortController(), new AbortController()];
  const waits = [join(first.signal), join(second.signal)];
  first.abort(new Error("pod one was deleted"));
  await assert.rejects(waits[0]!, /pod one was deleted/);
  assert.equal(started[0]?.signal.aborted, false);
  second.abort(new Error("pod two was deleted"));
  await assert.rejects(waits[1]!, /pod two was deleted/);
  assert.equal(started[0]?.signal.aborted, true);
  const third = join();
  assert.equal(started.length, 2, "cancelled work is not joined");
  started[0]?.fail(new Error("cancelled"));
  await settle();
  started[1]?.end(1);
  assert.equal(await third, 1);
});

test("all waiters get the failure", async () => {
  const { started, join } = world();
  const waits = Promise.allSettled([join(), join()]);
  started[0]?.fail(new Error("no such host"));
  assert.ok((await waits).every((wait) => wait.status === "rejected"));
});
