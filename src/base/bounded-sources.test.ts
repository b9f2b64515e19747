import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock, settle } from "../../test/support/manual-clock.ts";
import { BoundedSources } from "./bounded-sources.ts";

class Scene {
  readonly clock = new ManualClock();
  readonly sources = new BoundedSources(this.clock, 2000);
  readonly problems: string[] = [];
  reads = 0;

  async read<T>(source: string, work: () => Promise<T>): Promise<T | undefined> {
    const counted = async (): Promise<T> => {
      this.reads++;
      return await work();
    };
    return await this.sources.read(source, counted, (why) => this.problems.push(`${source}: ${why}`));
  }
}

test("a source that stalls has no result after its limit, and is not read again before it has ended", async () => {
  const scene = new Scene();
  const stall = Promise.withResolvers<number>();
  const first = scene.read("disk", () => stall.promise);
  assert.equal(await scene.read("other", async () => 7), 7);
  await scene.clock.advance(2000);
  assert.equal(await first, undefined);
  await scene.clock.advance(10_000);
  assert.equal(await scene.read("disk", async () => 1), undefined);
  assert.deepEqual(
    [scene.reads, scene.problems],
    [2, ["disk: has not answered for 2 s", "disk: has not answered for 12 s"]],
  );
  stall.resolve(5);
  await settle();
  assert.equal(await scene.read("disk", async () => 6), 6, "what came late is of the past");
  assert.deepEqual(scene.clock.waits, []);
});

test("whoever asks meanwhile waits for the end of the read before, and then reads anew", async () => {
  const scene = new Scene();
  const slow = Promise.withResolvers<string>();
  const results = [scene.read("disk", () => slow.promise), scene.read("disk", async () => "second")];
  await scene.clock.advance(1000);
  assert.equal(scene.reads, 1);
  slow.resolve("first");
  assert.deepEqual([await Promise.all(results), scene.problems], [["first", "second"], []]);
});

test("a source that fails has no result, and its error is told", async () => {
  const scene = new Scene();
  const failing = scene.read("disk", async () => {
    throw new Error("input/output error");
  });
  assert.deepEqual([await failing, scene.problems], [undefined, ["disk: input/output error"]]);
  assert.equal(await scene.read("disk", async () => 1), 1);
});
