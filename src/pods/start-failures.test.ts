import assert from "node:assert/strict";
import { test } from "node:test";
import { StartFailures } from "./start-failures.ts";

const failure = { reason: "ContainerCreating", message: 'configmap "c" not found', retryAtMs: undefined };

test("a sandbox that fails for want of what has come meanwhile is tried again at once", () => {
  const failures = new StartFailures();
  failures.makesSandbox();
  failures.outdated();
  failures.sandboxFailed(failure, 10_000);
  assert.deepEqual([failures.sandbox?.message, failures.sandboxRetryAt], [failure.message, 0]);
  failures.makesSandbox();
  assert.equal(failures.sandbox, undefined);
  failures.sandboxFailed(failure, 20_000);
  assert.equal(failures.sandboxRetryAt, 20_000, "nothing has changed since this try began");
});
