import assert from "node:assert/strict";
import { test } from "node:test";
import { testContainer, testPod, testSandbox } from "../../test/support/observed.ts";
import type { Pod } from "../api/pod.ts";
import type { Cause } from "../journal/entry.ts";
import { killContainerError } from "../runtime/operations/pod-operation.ts";
import { StartFailures } from "./start-failures.ts";

const failure = { reason: "ContainerCreating", message: 'configmap "c" not found', retryAtMs: undefined };

test("a sandbox that failed for something now available is retried at once", () => {
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

test("a container's failure is cleared when the container changes, at the end of an attempt in progress", () => {
  const podWith = (image: string): Pod => testPod({ containers: ["a", "b"].map((name) => ({ name, image })) });
  const names = (failures: StartFailures): (number | undefined)[] =>
    ["a", "b"].map((name) => failures.retryAt({ name }));
  const failures = new StartFailures();
  failures.settled("a", failure, 10_000);
  failures.updated(podWith("old"), podWith("old"), new Set(["b"]));
  assert.deepEqual(names(failures), [10_000, undefined], "nothing has changed");
  failures.updated(podWith("old"), podWith("new"), new Set(["b"]));
  assert.deepEqual(names(failures), [undefined, undefined]);
  failures.settled("b", failure, 10_000);
  assert.deepEqual(names(failures), [undefined, 0], "the try was one of the old image");
  failures.settled("b", failure, 20_000);
  assert.deepEqual(names(failures), [undefined, 20_000]);
});

test("a failed stop is not a container's waiting reason", () => {
  const failures = new StartFailures();
  const restarts = { delayMs: () => 0 };
  failures.settled("c", { ...failure, reason: killContainerError }, 10_000);
  assert.equal(failures.waiting(testPod(), undefined, restarts).size, 0);
  failures.settled("c", failure, 10_000);
  assert.equal(failures.waiting(testPod(), undefined, restarts).get("c")?.reason, "ContainerCreating");
});

test("a pod that finally has its sandbox does not wait for one, unless it starts over", () => {
  const failures = new StartFailures();
  const told = (): string | undefined => failures.sandbox?.message;
  failures.sandboxFailed(failure, 10_000);
  const none = { sandbox: undefined, restartAll: undefined, waits: [] };
  failures.decided(none, 0);
  assert.equal(told(), failure.message, "it is still to be made");
  const cause: Cause = { code: "RestartAllContainers", message: "container c exited with code 7 (Error)" };
  const waits = [{ container: { name: "c" }, exited: testContainer({ name: "c" }), untilMs: 5, cause }];
  failures.decided({ ...none, sandbox: testSandbox(), waits }, 0);
  assert.equal(told(), failure.message);
  failures.decided({ ...none, sandbox: testSandbox() }, 0);
  assert.equal(told(), undefined);
});
