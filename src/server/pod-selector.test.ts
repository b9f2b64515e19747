import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../base/ids.ts";
import { noSuchPod, rejectedAs } from "./pod-selector.ts";

const pods = [
  { namespace: "default", name: "web-node1", uid: podUid("1a2b") },
  { namespace: "default", name: "web-node1", uid: podUid("9f8e") },
  { namespace: "default", name: "db-0", uid: podUid("3c") },
  { namespace: "tools", name: "db-1", uid: podUid("4d") },
];

test("an unknown name is answered with pods of that prefix, or with a similar spelling", () => {
  const remedy = (selector: string): string | undefined => noSuchPod(selector, pods).remedy;
  assert.equal(noSuchPod("web", pods).message, 'pod "web" not found');
  assert.equal(remedy("web"), "did you mean web-node1?");
  assert.equal(remedy("9f"), "did you mean web-node1?", "a UID, too");
  assert.equal(remedy("db"), "pods with this prefix: db-0, tools/db-1");
  assert.equal(remedy("tools/d"), "did you mean tools/db-1?");
  assert.equal(remedy("bd-0"), "did you mean db-0?");
  assert.equal(remedy("zzzzzzzz"), "existing pods: db-0, tools/db-1, web-node1");
  assert.equal(remedy(""), "existing pods: db-0, tools/db-1, web-node1");
});

test("among many pods a few are named, and a node without pods is reported as such", () => {
  const many = Array.from({ length: 20 }, (_, index) => ({
    namespace: "default",
    name: `p-${index}`,
    uid: podUid(`${index}`),
  }));
  assert.match(
    noSuchPod("p", many).remedy ?? "",
    /^pods with this prefix: p-0, p-1, .* and 12 more \('podwright ps' lists them\)$/,
  );
  assert.equal(noSuchPod("web", []).remedy, "this node has no pods");
});

test("a name in a rejected manifest is answered with its problem", () => {
  const place = "/etc/kubernetes/manifests/web.yaml";
  const bad = { place, object: "front", message: `${place}:7:12: spec.containers[0].image: Required value` };
  const torn = { place: "/m/torn.json", message: "/m/torn.json:1:9: expected a comma" };
  const rejected = [bad, { ...bad, message: "second" }, torn];
  for (const selector of ["front", "front-node1", "default/front", "kube-system/front-node1"]) {
    assert.deepEqual(rejectedAs(selector, rejected, "node1"), [bad.message, "second"], selector);
  }
  for (const selector of ["web", "front-node2", "torn.json", ""]) {
    assert.deepEqual(rejectedAs(selector, rejected, "node1"), [], selector);
  }
  assert.deepEqual(rejectedAs("torn-node1", rejected, "node1"), [torn.message], "by the file's own name");
  const one = noSuchPod("torn", pods, [torn.message]);
  assert.equal(one.message, 'pod "torn" not found: its manifest is rejected: /m/torn.json:1:9: expected a comma');
  assert.equal(one.remedy, "fix the manifest, or remove it");
  assert.match(
    noSuchPod("a", pods, ["b", "c", "d"]).message,
    / rejected: b \(and 2 more: 'podwright doctor' lists them\)$/u,
  );
});
