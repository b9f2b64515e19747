import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { TransientList } from "./transient-list.ts";

test("values are there in the order in which they came, until they are disposed of", () => {
  const list = new TransientList<string>();
  const [a, b, c] = ["a", "b", "c"].map((value) => list.add(value));
  assert.deepEqual([[...list], list.size], [["a", "b", "c"], 3]);
  b?.[Symbol.dispose]();
  assert.deepEqual([[...list], list.size], [["a", "c"], 2]);
  b?.[Symbol.dispose]();
  a?.[Symbol.dispose]();
  c?.[Symbol.dispose]();
  assert.deepEqual([[...list], list.size], [[], 0], "once each");
  const again = [list.add("a"), list.add("a")];
  assert.deepEqual([...list], ["a", "a"], "the same twice");
  again[1]?.[Symbol.dispose]();
  list.clear();
  again[0]?.[Symbol.dispose]();
  assert.deepEqual([[...list], list.size], [[], 0]);
});

test("while it is gone through, what is removed is left out, and what is added comes the next time", () => {
  const list = new TransientList<string>();
  const seen: string[] = [];
  const [, second] = ["a", "b", "c"].map((value) => list.add(value));
  for (const value of list) {
    seen.push(value);
    if (value !== "a") continue;
    second?.[Symbol.dispose]();
    list.add("d");
  }
  assert.deepEqual(
    [seen, [...list]],
    [
      ["a", "c"],
      ["a", "c", "d"],
    ],
  );
});

/** What is in progress changes all the time; what remains of it in the old generation, in KiB. */
async function oldGarbageKiB(made: string, add: string, remove: string): Promise<number> {
  const script = `
    import { getHeapSpaceStatistics } from "node:v8";
    import { TransientList } from ${JSON.stringify(new URL("transient-list.ts", import.meta.url).href)};
    import { TransientMap } from ${JSON.stringify(new URL("transient-map.ts", import.meta.url).href)};
    const used = () => getHeapSpaceStatistics().find((space) => space.space_name === "old_space").space_used_size;
    const all = ${made};
    const work = () => ({ parts: Array.from({ length: 100 }, () => ({})) });
    let before = 0;
    for (let round = 0; round < 600; round++) {
      if (round === 100) {
        gc();
        before = used();
      }
      const some = Array.from({ length: 10 }, work).map((value, index) => {
        const key = "work " + (round * 10 + index);
        const added = ${add};
        return () => ${remove};
      });
      await new Promise(setImmediate);
      for (const end of some) end();
      // What was in progress is over by then.
      if (round % 5 === 0) gc({ type: "minor" });
    }
    console.log(Math.round((used() - before) / 1024));`;
  // Nothing but the test collects all garbage.
  const args = ["--expose-gc", "--initial-heap-size=256", "--input-type=module", "--eval", script];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return Number(stdout);
}

test("what is over does not become old, as it does with a Set and a Map", async () => {
  const [list, map, set, plain] = await Promise.all([
    oldGarbageKiB("new TransientList()", "all.add(value)", "added[Symbol.dispose]()"),
    oldGarbageKiB("new TransientMap()", "all.set(key, value)", "all.delete(key)"),
    oldGarbageKiB("new Set()", "all.add(value)", "all.delete(value)"),
    oldGarbageKiB("new Map()", "all.set(key, value)", "all.delete(key)"),
  ]);
  assert.ok(list < 200 && map < 200, `list ${list}, map ${map} KiB`);
  assert.ok(set > 5000 && plain > 5000, `the reason for both: list ${list}, map ${map}, Set ${set}, Map ${plain} KiB`);
});
