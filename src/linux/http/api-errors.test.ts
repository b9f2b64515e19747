import assert from "node:assert/strict";
import { test } from "node:test";
import { PodwrightError } from "../../base/errors.ts";
import { FileError } from "../../ports/files.ts";
import { answeredError, errorResponse } from "./api-errors.ts";

test("an error crosses the socket with its exit code, its remedy and its object problems", () => {
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

test("an error of the engine's files is the machine's problem, with the path and what to do", () => {
  const full = new FileError("ENOSPC", "/state/claims/a", "ENOSPC: no space left on device, write");
  const { status, body } = errorResponse(full);
  assert.ok(typeof body === "string");
  const { message, exitCode, remedy } = answeredError(status, body);
  assert.match(message, /^cannot \w+ \/state\/claims\/a: no space left on device/u);
  assert.deepEqual([exitCode, remedy], [3, "free some space on its file system"]);
});

test("a response that is not podwright's is truncated", () => {
  const body = JSON.stringify({
    error: "x",
    exitCode: 0,
    problems: [{ object: 1 }, null, { object: "o", path: [{}], detail: "d" }],
  });
  const { exitCode, problems } = answeredError(400, body);
  assert.deepEqual([exitCode, problems], [1, []]);
  assert.equal(answeredError(502, "<html>").message, "podwright returned 502: <html>");
});
