import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { jsonPatch, mergePatch } from "./json-patch.ts";
import type { Fields, Json } from "./objects.ts";
import { strategicMerge } from "./strategic-merge.ts";

describe("a JSON merge patch", () => {
  const samples: readonly (readonly [target: Json, patch: Json, merged: Json])[] = [
    [{ a: "b" }, { a: "c" }, { a: "c" }],
    [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
    [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
    [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
    [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: "b", c: null }, { a: "b" }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ];
  for (const [target, patch, merged] of samples) {
    it(`turns ${JSON.stringify(target)} and ${JSON.stringify(patch)} into ${JSON.stringify(merged)}`, () => {
      assert.deepEqual(mergePatch(target, patch), merged);
    });
  }
});

describe("a JSON patch", () => {
  const samples: readonly (readonly [target: Json, patch: Json, patched: Json])[] = [
    [{ a: [1, 3] }, [{ op: "add", path: "/a/1", value: 2 }], { a: [1, 2, 3] }],
    [{ a: [1] }, [{ op: "add", path: "/a/-", value: 2 }], { a: [1, 2] }],
    [{ a: 1, b: 2 }, [{ op: "remove", path: "/a" }], { b: 2 }],
    [{ a: { "x/y~z": 1 } }, [{ op: "replace", path: "/a/x~1y~0z", value: 2 }], { a: { "x/y~z": 2 } }],
    [{ a: 1 }, [{ op: "move", from: "/a", path: "/b" }], { b: 1 }],
    [
      { a: 1 },
      [
        { op: "copy", from: "/a", path: "/b" },
        { op: "test", path: "/b", value: 1 },
      ],
      { a: 1, b: 1 },
    ],
    [{ a: 1 }, [{ op: "replace", path: "", value: { c: 3 } }], { c: 3 }],
  ];
  for (const [target, patch, patched] of samples) {
    it(`${JSON.stringify(patch)} gives ${JSON.stringify(patched)}`, () => {
      const before = JSON.stringify(target);
      assert.deepEqual(jsonPatch(target, patch), patched);
      assert.equal(JSON.stringify(target), before, "what was patched is as it was");
    });
  }
  it("is rejected if an operation does not apply", () => {
    const refused: readonly Json[] = [
      [{ op: "test", path: "/a", value: 2 }],
      [{ op: "remove", path: "/b" }],
      [{ op: "replace", path: "/b", value: 1 }],
      [{ op: "add", path: "/b/c", value: 1 }],
      [{ op: "add", path: "/list/7", value: 1 }],
    ];
    for (const patch of refused) {
      assert.throws(() => jsonPatch({ a: 1, list: [] }, patch), { name: "ApiError", code: 422 });
    }
    assert.throws(() => jsonPatch({ a: 1 }, [{ op: "fly", path: "/a" }]), { code: 400 });
    assert.throws(() => jsonPatch({ a: 1 }, { op: "add" }), { code: 400 });
  });
});

describe("a strategic merge patch", () => {
  const patch = (original: Fields, change: Fields): Fields => strategicMerge("Pod", original, change);

  it("merges containers and their variables by name", () => {
    const original = {
      spec: { containers: [{ name: "a", image: "a:1", env: [{ name: "X", value: "1" }] }, { name: "b" }] },
    };
    const change = { spec: { containers: [{ name: "a", env: [{ name: "Y", value: "2" }] }, { name: "c" }] } };
    assert.deepEqual(patch(original, change), {
      spec: {
        containers: [
          {
            name: "a",
            image: "a:1",
            env: [
              { name: "X", value: "1" },
              { name: "Y", value: "2" },
            ],
          },
          { name: "b" },
          { name: "c" },
        ],
      },
    });
  });
  it("replaces lists without a merge key, such as container statuses", () => {
    const original = { status: { containerStatuses: [{ name: "a" }, { name: "b" }] } };
    const change = { status: { containerStatuses: [{ name: "b", ready: true }] } };
    assert.deepEqual(patch(original, change), change);
  });
  it("updates conditions by type, in the requested order", () => {
    const original = {
      status: {
        conditions: [
          { type: "Mine", status: "True" },
          { type: "Ready", status: "False" },
        ],
      },
    };
    const change = {
      status: {
        "$setElementOrder/conditions": [{ type: "Initialized" }, { type: "Ready" }],
        conditions: [
          { type: "Initialized", status: "True" },
          { type: "Ready", status: "True" },
        ],
      },
    };
    const { conditions } = change.status;
    const unsorted = { status: { ...change.status, conditions: conditions.toReversed() } };
    assert.throws(() => patch(original, unsorted), { code: 500 }, "what comes in another order than it asks for");
    assert.deepEqual(patch(original, change), {
      status: {
        conditions: [
          { type: "Initialized", status: "True" },
          { type: "Mine", status: "True" },
          { type: "Ready", status: "True" },
        ],
      },
    });
  });
  it("removes an item by $patch: delete, a member by null, and a list by $patch: replace", () => {
    const original = { spec: { containers: [{ name: "a" }, { name: "b", tty: true }], hostname: "h" } };
    const removed = patch(original, {
      spec: {
        hostname: null,
        containers: [
          { name: "a", $patch: "delete" },
          { name: "b", tty: null },
        ],
      },
    });
    assert.deepEqual(removed, { spec: { containers: [{ name: "b" }] } });
    const replaced = patch(original, { spec: { containers: [{ name: "z" }, { $patch: "replace" }] } });
    assert.deepEqual(replaced, { spec: { containers: [{ name: "z" }], hostname: "h" } });
  });
  it("keeps only the retained keys of a volume that changes its type", () => {
    const original = { spec: { volumes: [{ name: "v", emptyDir: {} }] } };
    const change = { spec: { volumes: [{ name: "v", $retainKeys: ["name", "hostPath"], hostPath: { path: "/x" } }] } };
    assert.deepEqual(patch(original, change), { spec: { volumes: [{ name: "v", hostPath: { path: "/x" } }] } });
  });
  it("treats finalizers as a set", () => {
    const original = { metadata: { finalizers: ["a", "b"] } };
    const change = { metadata: { "$deleteFromPrimitiveList/finalizers": ["a"], finalizers: ["b", "c"] } };
    assert.deepEqual(patch(original, change), { metadata: { finalizers: ["b", "c"] } });
  });
  it("replaces a map by $patch: replace", () => {
    const original = { metadata: { labels: { a: "1", b: "2" } } };
    assert.deepEqual(patch(original, { metadata: { labels: { $patch: "replace", c: "3" } } }), {
      metadata: { labels: { c: "3" } },
    });
  });
  it("is rejected if an item lacks its key", () => {
    assert.throws(() => patch({ spec: {} }, { spec: { containers: [{ image: "x" }] } }), { code: 400 });
    assert.throws(() => patch({}, { $patch: "explode" }), { code: 400 });
  });
});
