import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock, settle } from "../../test/support/manual-clock.ts";
import { FileError } from "../ports/files.ts";
import type { TreeUsage } from "../ports/stats-files.ts";
import { WritableLayers } from "./writable-layers.ts";

/** A machine with containers whose layers have directories of their process's number. */
class Scene {
  readonly clock = new ManualClock();
  readonly processes = new Map([
    ["a", 1],
    ["b", 2],
  ]);
  readonly trees = new Map<string, TreeUsage | "hangs" | "refused">([
    ["/s/1/fs", { bytes: 4096, inodes: 2 }],
    ["/s/2/fs", { bytes: 8192, inodes: 3 }],
  ]);
  readonly layers: WritableLayers;
  aborted = 0;

  constructor() {
    const files = {
      upperDirectories: async (pids: readonly number[]) => pids.map((pid) => (pid === 9 ? undefined : `/s/${pid}/fs`)),
      treeUsage: async (path: string, signal: AbortSignal) => {
        const tree = this.trees.get(path);
        if (tree === "refused") throw new FileError("ETIMEDOUT", "/s", "the disk does not answer");
        if (tree !== "hangs") return tree;
        return await new Promise<undefined>((_, reject) =>
          signal.addEventListener("abort", () => {
            this.aborted++;
            reject(signal.reason as Error);
          }),
        );
      },
      fileSystemNumber: async (path: string) => {
        if (this.trees.get(path) === "refused") throw new FileError("ETIMEDOUT", "/s", "the disk does not answer");
        return this.trees.has(path) ? 1 : undefined;
      },
    };
    const deps = { clock: this.clock, files, processes: async () => this.processes };
    this.layers = new WritableLayers(deps, new AbortController().signal);
  }
}

test("layers are measured where containers' roots keep what is written; others are missing", async () => {
  const scene = new Scene();
  scene.processes.set("elsewhere", 9);
  scene.processes.set("gone", 3);
  const found = await scene.layers.measure(["a", "b", "elsewhere", "gone", "without processes"]);
  assert.deepEqual(
    [...found],
    [
      ["a", { path: "/s/1/fs", bytes: 4096, inodes: 2 }],
      ["b", { path: "/s/2/fs", bytes: 8192, inodes: 3 }],
    ],
  );
});

test("a layer that takes too long is missing, and its walk is canceled", async () => {
  const scene = new Scene();
  scene.trees.set("/s/1/fs", "hangs");
  const measured = scene.layers.measure(["a", "b"]);
  await settle();
  await scene.clock.advance(2000);
  assert.deepEqual([...(await measured).keys()], ["b"]);
  assert.equal(scene.aborted, 1);
  scene.trees.set("/s/1/fs", { bytes: 1, inodes: 1 });
  assert.deepEqual([...(await scene.layers.measure(["a"])).keys()], ["a"], "the next measurement is not held up");
});

test("layers of removed containers are freed once their directories are gone; of unknown ones nobody knows", async () => {
  const { layers, trees } = new Scene();
  await layers.measure(["a", "b"]);
  assert.deepEqual(await layers.left(["a", "b"]), { there: ["a", "b"], unknown: [] });
  trees.delete("/s/1/fs");
  assert.deepEqual(await layers.left(["a", "b", "c"]), { there: ["b"], unknown: ["c"] });
  trees.delete("/s/2/fs");
  assert.deepEqual(await layers.left(["a", "b"]), { there: [], unknown: [] });
});

test("layers on a disk that does not answer are missing alone, and not taken for removed", async () => {
  const { layers, trees } = new Scene();
  await layers.measure(["a", "b"]);
  trees.set("/s/1/fs", "refused");
  assert.deepEqual([...(await layers.measure(["a", "b"])).keys()], ["b"]);
  assert.deepEqual(await layers.left(["a", "b"]), { there: ["a", "b"], unknown: [] });
});
