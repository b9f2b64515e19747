import assert from "node:assert/strict";
import { test } from "node:test";
import { testPod } from "../../test/support/observed.ts";
import { probedContainers, probeTimes } from "./probe-spec.ts";

test("omitted fields have the API's defaults, and so have zeros except the delay", () => {
  const defaults = { initialDelayMs: 0, periodMs: 10_000, timeoutMs: 1000, successThreshold: 1, failureThreshold: 3 };
  assert.deepEqual(probeTimes({}), defaults);
  const zeros = {
    initialDelaySeconds: 0,
    periodSeconds: 0,
    timeoutSeconds: 0,
    successThreshold: 0,
    failureThreshold: 0,
  };
  assert.deepEqual(probeTimes(zeros), defaults);
  const given = {
    initialDelaySeconds: 5,
    periodSeconds: 2,
    timeoutSeconds: 4,
    successThreshold: 6,
    failureThreshold: 7,
  };
  assert.deepEqual(probeTimes(given), {
    initialDelayMs: 5000,
    periodMs: 2000,
    timeoutMs: 4000,
    successThreshold: 6,
    failureThreshold: 7,
  });
});

test("regular containers and sidecars are probed; other init containers and ephemeral ones are not", () => {
  const pod = testPod({
    initContainers: [{ name: "i" }, { name: "s", restartPolicy: "Always" }],
    ephemeralContainers: [{ name: "e" }],
  });
  assert.deepEqual(
    probedContainers(pod).map(({ name }) => name),
    ["s", "c"],
  );
});
