import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultContainer } from "./default-container.ts";

test("the container of the annotation is meant, without a word; else the first, which is said when there are others", () => {
  assert.deepEqual(defaultContainer(["app", "side"], "side"), { name: "side" });
  assert.deepEqual(defaultContainer(["app"], undefined), { name: "app" });
  assert.deepEqual(defaultContainer(["app", "side"], undefined), {
    name: "app",
    note: 'Defaulted container "app" out of: app, side',
  });
  assert.deepEqual(defaultContainer([], "app"), undefined);
});

test("an annotation that names no container is told, and the first one is meant", () => {
  assert.deepEqual(defaultContainer(["app", "side"], "gone")?.name, "app");
  assert.match(defaultContainer(["app", "side"], "gone")?.note ?? "", /no container "gone".*Defaulted container "app"/);
  assert.match(defaultContainer(["app"], "gone")?.note ?? "", /no container "gone", which its annotation kubectl/);
});
