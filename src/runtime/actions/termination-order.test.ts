import assert from "node:assert/strict";
import { test } from "node:test";
import type { Container } from "../../api/container.ts";
import { testPod } from "../../../test/support/observed.ts";
import { terminationOrder } from "./termination-order.ts";

const sidecar = (name: string): Container => ({ name, image: "b", restartPolicy: "Always" });
const plain = (name: string): Container => ({ name, image: "b" });

const pod = testPod({
  initContainers: [sidecar("s1"), plain("i1"), sidecar("s2"), sidecar("s3")],
  containers: [plain("a"), plain("b")],
});

/** What runs, and who waits for whom. */
const table: readonly (readonly [string, readonly string[], Readonly<Record<string, readonly string[]>>])[] = [
  ["regular containers wait for nobody", ["a", "b"], {}],
  ["a sidecar waits for every regular container", ["s3", "a", "b"], { s3: ["a", "b"] }],
  [
    "sidecars end in reverse order of their start",
    ["s1", "s2", "s3", "a", "b"],
    { s3: ["a", "b"], s2: ["a", "b", "s3"], s1: ["a", "b", "s3", "s2"] },
  ],
  ["who does not run is not waited for", ["s1", "s3", "b"], { s3: ["b"], s1: ["b", "s3"] }],
  ["a sidecar waits for a later one over another that does not run", ["s1", "s3"], { s1: ["s3"] }],
  ["the last sidecar that is left waits for nobody", ["s2"], {}],
  ["an init container is stopped at once and not waited for", ["s1", "i1"], {}],
  ["containers that the spec does not know wait for nobody", ["s1", "debugger"], {}],
];

for (const [name, running, expected] of table) {
  test(name, () => assert.deepEqual(Object.fromEntries(terminationOrder(pod, new Set(running))), expected));
}

test("a pod known only to the runtime has no order", () => {
  assert.deepEqual([...terminationOrder(undefined, new Set(["s1", "a"]))], []);
});

test("a container that would wait for itself violates an invariant", () => {
  const same = testPod({ initContainers: [sidecar("a")], containers: [plain("a")] });
  assert.throws(() => terminationOrder(same, new Set(["a"])), /no container waits for itself to stop/);
});
