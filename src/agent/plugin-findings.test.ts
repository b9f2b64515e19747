import assert from "node:assert/strict";
import { test } from "node:test";
import { pluginFindings } from "./plugin-findings.ts";

test("doctor names plugins whose sockets are there, and that could not be registered", () => {
  assert.deepEqual(pluginFindings([]), []);
  const [finding] = pluginFindings([{ path: "/p/d-reg.sock", problem: "no response within 1 s" }]);
  assert.equal(finding?.detail, "the plugin at /p/d-reg.sock is not registered: no response within 1 s");
  assert.deepEqual([finding?.ok, finding?.warning], [true, true]);
});
