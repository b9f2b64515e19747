import assert from "node:assert/strict";
import { test } from "node:test";
import { goJson } from "./go-json.ts";

test("HTML characters are escaped, like Go does", () => {
  assert.equal(goJson({ a: '<&>\u2028\u2029"ä' }), String.raw`{"a":"\u003c\u0026\u003e\u2028\u2029\"ä"}`);
  assert.equal(goJson([1, true, null, "x"]), '[1,true,null,"x"]');
});
