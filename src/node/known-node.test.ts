import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { NodeObject } from "../api/node.ts";
import { KnownNode } from "./known-node.ts";

const node = (resourceVersion: string, uid = "n"): NodeObject => ({
  metadata: { name: "node1", uid, resourceVersion },
});

describe("the Node as the server had it last", () => {
  test("ignores late responses", () => {
    const known = new KnownNode();
    assert.ok(known.take(node("4")));
    assert.equal(known.take(node("3")), false);
    assert.deepEqual(known.node, node("4"));
    assert.ok(known.take(node("4")), "the same once more changes nothing");
    assert.ok(known.take(node("10")), "versions are numbers");
  });

  test("is the list's: the server's store may have been restored", () => {
    const known = new KnownNode();
    known.take(node("40"));
    known.listed(node("30"));
    assert.deepEqual(known.node, node("30"));
    assert.ok(known.take(node("31")));
    known.listed(undefined);
    assert.equal(known.node, undefined);
    assert.ok(known.take(node("20", "new")));
  });

  test("is gone after its deletion, despite late responses, until there is a new one", () => {
    const known = new KnownNode();
    known.take(node("3"));
    assert.ok(known.gone(node("5")));
    assert.equal(known.take(node("4")), false);
    assert.equal(known.node, undefined);
    assert.ok(known.take(node("6", "new")));
    assert.equal(known.gone(node("5")), false, "the new one is there still");
    assert.deepEqual(known.node, node("6", "new"));
    assert.ok(known.gone(node("2", "new")), "told with an earlier state of it");
  });
});
