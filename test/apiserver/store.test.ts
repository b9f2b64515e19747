import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Fields } from "./objects.ts";
import { Store } from "./store.ts";

function object(name: string, value: number): Fields {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data: { value } };
}

function valuesAt(store: Store, revision: number): Record<string, unknown> {
  const entries = [...store.at("configmaps", revision)].map(([key, { data }]) => [key, (data as Fields)["value"]]);
  return Object.fromEntries(entries) as Record<string, unknown>;
}

describe("the store", () => {
  it("gives each change the next revision, whatever the resource", () => {
    const store = new Store();
    const first = store.put("configmaps", "a", object("a", 1));
    const second = store.put("leases", "l", object("l", 1));
    assert.equal(Number(second.metadata.resourceVersion), Number(first.metadata.resourceVersion) + 1);
    assert.equal(store.revision, Number(second.metadata.resourceVersion));
  });
  it("reproduces every earlier state", () => {
    const store = new Store();
    const states = new Map<number, Record<string, unknown>>([[store.revision, {}]]);
    const wanted = new Map<string, number>();
    for (let step = 0; step < 200; step++) {
      const key = `key-${step % 7}`;
      if (step % 5 === 4 && wanted.delete(key)) {
        store.remove("configmaps", key);
      } else {
        wanted.set(key, step);
        store.put("configmaps", key, object(key, step));
      }
      states.set(store.revision, Object.fromEntries(wanted));
    }
    for (const [revision, state] of states) assert.deepEqual(valuesAt(store, revision), state);
  });
  it("freezes its objects", () => {
    const stored = new Store().put("configmaps", "a", object("a", 1));
    assert.throws(() => Object.assign(stored["data"] as object, { value: 2 }), TypeError);
  });
  it("returns the changes since a revision, while they are kept", () => {
    const store = new Store(10);
    const start = store.revision;
    store.put("configmaps", "a", object("a", 1));
    store.remove("configmaps", "a");
    const events = store.since("configmaps", start);
    assert.deepEqual(
      events.map(({ deleted, previous }) => [deleted, previous === undefined]),
      [
        [false, true],
        [true, false],
      ],
    );
    assert.equal(
      events[1]?.current.metadata.resourceVersion,
      String(store.revision),
      "a deletion has its own revision",
    );
    for (let step = 0; step < 20; step++) store.put("configmaps", "a", object("a", step));
    assert.throws(() => store.since("configmaps", start), /too old resource version: 1 \(\d+\)/);
    assert.equal(store.since("configmaps", store.revision - 5).length, 5);
    store.compact();
    assert.throws(() => store.at("configmaps", store.revision - 1), { code: 410 });
  });
  it("notifies its listeners until they unsubscribe", () => {
    const store = new Store();
    const seen: string[] = [];
    const end = store.subscribe(({ key }) => seen.push(key));
    store.put("configmaps", "a", object("a", 1));
    end();
    store.put("configmaps", "b", object("b", 1));
    assert.deepEqual(seen, ["a"]);
  });
});
