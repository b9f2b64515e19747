import assert from "node:assert/strict";
import { test } from "node:test";
import { errorMessage, PodwrightError } from "../base/errors.ts";
import { located } from "./manifest-input.ts";

test("the engine's errors about a pod are shown with its file and line", () => {
  const origin = {
    file: "web.yaml",
    locate: (path: readonly (string | number)[]) => ({ line: path.length, column: 3 }),
  };
  const error = new PodwrightError(2, "Pod default/web: spec.nodeName: is bad", {
    problems: [
      { object: "Pod default/web", path: ["spec", "nodeName"], detail: "is bad" },
      { object: "Pod default/other", path: [], detail: "is bad too" },
    ],
  });
  const told = located(error, new Map([["Pod default/web", origin]]));
  assert.equal(errorMessage(told), "web.yaml:2:3: spec.nodeName: is bad\nPod default/other: is bad too");
  const other = new Error("something else");
  assert.equal(located(other, new Map()), other);
});
