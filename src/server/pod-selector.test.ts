import assert from "node:assert/strict";
import { test } from "node:test";
import { noSuchPod } from "./pod-selector.ts";

const pods = [
  { namespace: "default", name: "web-node1", uid: "1a2b" },
  { namespace: "default", name: "web-node1", uid: "9f8e" },
  { namespace: "default", name: "db-0", uid: "3c" },
  { namespace: "tools", name: "db-1", uid: "4d" },
];

test("a name that no pod has is answered with those that begin with it, or are spelled nearly so", () => {
  const remedy = (selector: string): string | undefined => noSuchPod(selector, pods).remedy;
  assert.equal(noSuchPod("web", pods).message, 'there is no pod "web"');
  assert.equal(remedy("web"), "did you mean web-node1?");
  assert.equal(remedy("9f"), "did you mean web-node1?", "a UID, too");
  assert.equal(remedy("db"), "these begin so: db-0, tools/db-1");
  assert.equal(remedy("tools/d"), "did you mean tools/db-1?");
  assert.equal(remedy("bd-0"), "did you mean db-0?");
  assert.equal(remedy("zzzzzzzz"), "there are: db-0, tools/db-1, web-node1");
  assert.equal(remedy(""), "there are: db-0, tools/db-1, web-node1");
});

test("of many pods a few are named, and of none that there are none", () => {
  const many = Array.from({ length: 20 }, (_, index) => ({
    namespace: "default",
    name: `p-${index}`,
    uid: `${index}`,
  }));
  assert.match(
    noSuchPod("p", many).remedy ?? "",
    /^these begin so: p-0, p-1, .* and 12 more \('podwright ps' lists them\)$/,
  );
  assert.equal(noSuchPod("web", []).remedy, "there are no pods here");
});
