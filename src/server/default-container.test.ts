import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultContainer } from "./default-container.ts";

test("the annotated container is chosen silently; else the first, with a note if there are others", () => {
  assert.deepEqual(defaultContainer(["app", "side"], "side"), { name: "side" });
  assert.deepEqual(defaultContainer(["app"], undefined), { name: "app" });
  assert.deepEqual(defaultContainer(["app", "side"], undefined), {
    name: "app",
    note: 'Defaulted container "app" out of: app, side',
  });
  assert.deepEqual(defaultContainer([], "app"), undefined);
});

test("an annotation of an unknown container is reported, and the first container is chosen", () => {
  assert.deepEqual(defaultContainer(["app", "side"], "gone")?.name, "app");
  assert.match(defaultContainer(["app", "side"], "gone")?.note ?? "", /no container "gone".*Defaulted container "app"/);
  assert.match(defaultContainer(["app"], "gone")?.note ?? "", /no container "gone", which its annotation kubectl/);
});
