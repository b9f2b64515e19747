import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodManifest, PodSpec } from "../api/pod.ts";
import { priorityErrors, priorityWarnings, withClassPriority } from "./priority-class.ts";

const containers = [{ name: "c", image: "i" }];
const manifest = (spec: Partial<PodSpec>): PodManifest => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "a" },
  spec: { containers, ...spec },
});
const details = (errors: readonly { readonly detail: string }[]): string[] => errors.map(({ detail }) => detail);

test("a built-in class gives its priority, any other class and a given priority change nothing", () => {
  const priority = (spec: Partial<PodSpec>): number | undefined => withClassPriority(manifest(spec).spec).priority;
  assert.equal(priority({ priorityClassName: "system-node-critical" }), 2_000_001_000);
  assert.equal(priority({ priorityClassName: "system-cluster-critical" }), 2_000_000_000);
  assert.equal(priority({ priorityClassName: "system-node-critical", priority: 5 }), 5);
  assert.equal(priority({ priorityClassName: "high" }), undefined);
  assert.equal(priority({ priorityClassName: "" }), undefined);
  assert.equal(priority({}), undefined);
});

test("a priority other than that of its class is an error", () => {
  const wrong = { priorityClassName: "system-cluster-critical", priority: 1000 };
  assert.deepEqual(details(priorityErrors(manifest(wrong))), [
    "Invalid value: 1000: the priority class system-cluster-critical has 2000000000; omit the field",
  ]);
  assert.deepEqual(priorityErrors(manifest({ ...wrong, priority: 2_000_000_000 })), []);
  assert.deepEqual(priorityErrors(manifest({ priorityClassName: "high", priority: 1000 })), []);
});

test("another class without a priority is a warning", () => {
  assert.deepEqual(details(priorityWarnings(manifest({ priorityClassName: "high" }))), [
    "has no meaning without a cluster, which defines it: only system-node-critical and system-cluster-critical are known; the priority is 0, set priority instead",
  ]);
  assert.deepEqual(priorityWarnings(manifest({ priorityClassName: "high", priority: 7 })), []);
  assert.deepEqual(priorityWarnings(manifest({ priorityClassName: "system-node-critical" })), []);
  assert.deepEqual(priorityWarnings(manifest({})), []);
});
