import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { testSandbox, testStatus } from "../../test/support/observed.ts";
import type { PodOperation } from "../runtime/operations/pod-operation.ts";
import { silentLog } from "../sim/machine.ts";
import { PodOperations } from "./pod-operations.ts";

const status = testStatus([testSandbox()]);
const { signal } = new AbortController();

function operations(): PodOperations {
  const ignore = (): void => {};
  const events = {
    sandboxMade: ignore,
    sandboxFailed: ignore,
    attempted: ignore,
    settled: ignore,
    resizeFailed: ignore,
    stopping: () => Promise.resolve(),
  };
  return new PodOperations(new ManualClock(), silentLog, { ...events, moved: ignore });
}

/** Works on these containers until it is canceled. */
function work(containers: readonly string[], more: Partial<PodOperation> = {}): PodOperation {
  const run = (_: unknown, until: AbortSignal): Promise<void> =>
    new Promise((resolve) => until.addEventListener("abort", () => resolve()));
  return { name: `work on ${containers.join()}`, containers, wholePod: false, run, ...more };
}

test("two operations on one container, or beside the sandbox's creation, violate an invariant", () => {
  const own = operations();
  own.launch(work(["a"]), status, signal);
  own.launch(work(["b"]), status, signal);
  assert.throws(() => own.launch(work(["b", "c"]), status, signal), /no container is in two operations at once/);
  const whole = operations();
  whole.launch(work(["a"], { wholePod: true }), status, signal);
  assert.throws(
    () => whole.launch(work(["b"]), status, signal),
    /no operation begins in a pod while its sandbox is created/,
  );
});

test("nothing begins in a pod that is being stopped; a cancellation for another reason is followed by more operations", () => {
  const own = operations();
  own.launch(work(["a"]), status, signal);
  assert.equal(own.abort(new Error("the sandbox is replaced")), 1);
  own.launch(work(["b"]), status, signal);
  assert.equal(own.end(new Error("the pod stops")), 2);
  assert.throws(() => own.launch(work(["c"]), status, signal), /no operation begins in a pod that is ending/);
});
