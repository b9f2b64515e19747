import assert from "node:assert/strict";
import { test } from "node:test";
import { podView } from "../../test/support/pod-views.ts";
import type { PodView } from "../server/local-api.ts";
import { runEnd, waitResult } from "./pod-wait.ts";

const refs = [podView({ name: "a" }), podView({ name: "b" })];
const both = (change: Partial<PodView>): PodView[] => refs.map((pod) => ({ ...pod, ...change }));
const seen = new Map(refs.map((pod) => [pod.uid, pod]));

test("pods are ready once each is ready or has succeeded", () => {
  assert.equal(waitResult(refs, both({}), "ready").state, "reached");
  assert.equal(
    waitResult(refs, [podView({ name: "a" }), podView({ name: "b", phase: "Succeeded", ready: false })], "ready").state,
    "reached",
  );
  const result = waitResult(refs, [podView({ name: "a" })], "ready");
  assert.equal(result.state, "waiting");
  assert.deepEqual(
    result.missing.map(({ ref, view }) => [ref.name, view]),
    [["b", undefined]],
  );
});

test("a running pod need not be ready", () => {
  const views = both({ ready: false });
  assert.equal(waitResult(refs, views, "running").state, "reached");
  assert.equal(waitResult(refs, views, "ready").state, "waiting");
  assert.equal(waitResult(refs, both({ phase: "Pending", ready: false }), "running").state, "waiting");
});

test("a stopping pod is not ready, and a failed one will never be", () => {
  assert.equal(waitResult(refs, both({ state: "terminating" }), "ready").state, "waiting");
  assert.equal(waitResult(refs, both({ phase: "Failed", ready: false }), "running").state, "failed");
  assert.equal(waitResult(refs, [], "none").state, "reached");
});

test("a failed pod does not end the wait for the others", () => {
  const [failed, starting] = both({ phase: "Failed", ready: false });
  assert.ok(failed !== undefined && starting !== undefined);
  assert.equal(waitResult(refs, [failed, { ...starting, phase: "Pending" }], "ready").state, "waiting");
  const result = waitResult(refs, [failed, { ...starting, phase: "Running", ready: true }], "ready");
  assert.equal(result.state, "failed");
  assert.deepEqual(
    result.missing.map(({ ref }) => ref.name),
    [failed.name],
  );
});

test("a run has ended once all its pods have, and well if all succeeded", () => {
  assert.equal(runEnd(refs, seen, both({})), undefined);
  assert.equal(runEnd(refs, seen, both({ phase: "Succeeded", state: "terminated" })), "well");
  assert.equal(runEnd(refs, seen, both({ phase: "Succeeded", state: "terminating" })), undefined);
  assert.equal(
    runEnd(refs, seen, [
      podView({ name: "a", phase: "Succeeded", state: "terminated" }),
      podView({ name: "b", phase: "Failed", state: "terminated" }),
    ]),
    "badly",
  );
  assert.equal(
    runEnd(refs, seen, [podView({ name: "a", phase: "Succeeded", state: "terminated" }), podView({ name: "b" })]),
    undefined,
  );
});

test("a pod that is not listed yet has not ended; one that another user stopped has, without a failure", () => {
  assert.equal(runEnd(refs, new Map(), []), undefined);
  assert.equal(runEnd(refs, seen, []), "well");
  const failed = new Map(both({ phase: "Failed" }).map((pod) => [pod.uid, pod]));
  assert.equal(runEnd(refs, failed, []), "badly");
});
