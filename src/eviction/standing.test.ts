import assert from "node:assert/strict";
import { test } from "node:test";
import { observed, thresholdOf } from "../../test/support/eviction.ts";
import { standingText } from "./standing.ts";

test("a signal is described with its thresholds, soft ones with their grace period", () => {
  const observations = observed({ "nodefs.available": 512n << 20n }, 1n << 30n);
  const thresholds = [thresholdOf("nodefs.available", 0.25), thresholdOf("nodefs.available", "1Gi", 30_000)];
  assert.equal(
    standingText("nodefs.available", thresholds, observations),
    "nodefs.available is 512Mi of 1Gi; pods are evicted below 256Mi (25% of 1Gi), or 1Gi for 30 s",
  );
  assert.equal(
    standingText("nodefs.available", [], observations),
    "nodefs.available is 512Mi of 1Gi; no threshold is set",
  );
  assert.equal(standingText("pid.available", thresholds, observations), "pid.available is unknown");
});
