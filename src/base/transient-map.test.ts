import assert from "node:assert/strict";
import { test } from "node:test";
import { SimRandom } from "../sim/random.ts";
import { TransientMap } from "./transient-map.ts";

test("it is a Map: random operations on many names and numbers", () => {
  for (const keyOf of [(n: number) => `pod-${n}`, (n: number) => n * 2 + 1]) {
    const random = new SimRandom(7);
    const [map, model] = [new TransientMap<string | number, number>(), new Map<string | number, number>()];
    for (let step = 0; step < 20_000; step++) {
      const key = keyOf(Math.floor(random.uniform() * 200));
      if (random.uniform() < 0.5) {
        map.set(key, step);
        model.set(key, step);
      } else assert.equal(map.delete(key), model.delete(key));
      assert.deepEqual([map.get(key), map.has(key), map.size], [model.get(key), model.has(key), model.size]);
      if (step % 500 === 0) assert.deepEqual(map.entries(), [...model]);
    }
    assert.deepEqual([map.keys(), map.values()], [[...model.keys()], [...model.values()]]);
    map.clear();
    assert.deepEqual([map.size, map.entries(), map.get(keyOf(1))], [0, [], undefined]);
  }
});
