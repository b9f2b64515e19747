import assert from "node:assert/strict";
import { test } from "node:test";
import { PodwrightError } from "../../base/errors.ts";
import { answeredError, errorResponse } from "./api-errors.ts";

test("an error goes over the socket with its exit code, its remedy and what it says of objects", () => {
  const problems = [{ object: "Pod default/web", path: ["spec", "containers", 0, "image"], detail: "is bad" }];
  const { status, body } = errorResponse(new PodwrightError(2, "it is bad", { remedy: "mend it", problems }));
  assert.equal(status, 400);
  assert.ok(typeof body === "string");
  const { message, exitCode, remedy, problems: told } = answeredError(status, body);
  assert.deepEqual(
    { message, exitCode, remedy, told },
    { message: "it is bad", exitCode: 2, remedy: "mend it", told: problems },
  );
});

test("of an answer that is none of podwright's no more is taken than what fits", () => {
  const body = JSON.stringify({
    error: "x",
    exitCode: 0,
    problems: [{ object: 1 }, null, { object: "o", path: [{}], detail: "d" }],
  });
  const { exitCode, problems } = answeredError(400, body);
  assert.deepEqual([exitCode, problems], [1, []]);
  assert.equal(answeredError(502, "<html>").message, "podwright returned 502: <html>");
});
