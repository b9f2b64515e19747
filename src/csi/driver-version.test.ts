import assert from "node:assert/strict";
import { test } from "node:test";
import { compareVersions, highestVersion } from "./driver-version.ts";

test("the highest version below 2 is used, and its major version must be 1", () => {
  assert.deepEqual(highestVersion(["1.0.0"]), { version: "1.0.0" });
  assert.deepEqual(highestVersion(["1.2.0", "1.10.0", "2.0.0"]), { version: "1.10.0" });
  assert.deepEqual(highestVersion(["junk", "v1.1.0"]), { version: "v1.1.0" });
  for (const versions of [[], ["2.0.0"], ["0.3.0"], ["junk"]]) assert.ok("problem" in highestVersion(versions));
  assert.match(JSON.stringify(highestVersion(["0.3.0"])), /reported by plugin is 0\.3\.0, must be v1\.x/);
});

test("versions are compared numerically", () => {
  assert.ok(compareVersions("1.9.0", "1.10.0") < 0);
  assert.equal(compareVersions("1.0", "1.0.0"), 0);
});
