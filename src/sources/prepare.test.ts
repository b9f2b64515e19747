import assert from "node:assert/strict";
import { test } from "node:test";
import { problems } from "../../test/support/manifest-problems.ts";

test("a problem of a limit is not repeated for the request that defaults to it", () => {
  for (const [limits, count] of [
    ['{cpu: "lots"}', 1],
    ["{memory: -1}", 1],
    ['{cpu: "lots", memory: "more"}', 2],
  ] as const) {
    const found = problems(`{containers: [{name: c, image: i, resources: {limits: ${limits}}}]}`);
    assert.equal(found.length, count, found.join("\n"));
    assert.ok(
      found.every((problem) => problem.startsWith("spec.containers[0].resources.limits.")),
      found.join("\n"),
    );
  }
  const both = problems("{containers: [{name: c, image: i, resources: {limits: {cpu: x}, requests: {cpu: x}}}]}");
  assert.equal(both.length, 2, "what is written is told");
});
