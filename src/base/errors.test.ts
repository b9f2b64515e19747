import assert from "node:assert/strict";
import { test } from "node:test";
import { causeOf } from "./errors.ts";

class Wanted extends Error {}

test("an error is found among the causes of another, also when it has a cause itself", () => {
  const wanted = new Wanted("wanted", { cause: new Error("root") });
  assert.equal(causeOf(new Error("outer", { cause: wanted }), Wanted), wanted);
  assert.equal(causeOf(wanted, Wanted), wanted);
  assert.equal(causeOf(new Error("other", { cause: "text" }), Wanted), undefined);
});
