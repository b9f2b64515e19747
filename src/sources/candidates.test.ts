import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/pods.ts";
import { SimRandom } from "../sim/random.ts";
import { type Candidate, Candidates } from "./candidates.ts";
import type { SourcedPod } from "./source.ts";

function texts(candidates: readonly Candidate[]): string[] {
  return candidates.map(({ place, source }) => `${source} ${place}`);
}

test("incremental changes lead to the same candidates as one full update", () => {
  for (let seed = 1; seed <= 50; seed++) {
    const random = SimRandom.named(seed, "candidates");
    const [whole, changed] = [new Candidates(["file", "api"]), new Candidates(["file", "api"])];
    let count = 0;
    const some = (): SourcedPod => {
      const [name, uid] = [`pod-${random.integer(0, 5)}`, `uid-${random.integer(0, 9)}`];
      return { pod: podWith({}, { name, uid }), place: `${name} ${uid} ${count++}` };
    };
    const files = [some(), some()];
    for (const each of [whole, changed]) each.set("file", files);
    const pods: SourcedPod[] = [some(), some()];
    for (const each of [whole, changed]) each.set("api", pods);
    for (let step = 0; step < 30; step++) {
      const at = random.integer(0, pods.length);
      const left = pods[at];
      const came = random.chance(0.7) ? some() : undefined;
      pods.splice(at, 1, ...(came === undefined ? [] : [came]));
      const [expected, found] = [whole.set("api", pods), changed.change("api", { left, came })];
      assert.deepEqual(texts(found), texts(expected), `seed ${seed}`);
      assert.deepEqual(texts(changed.all()), texts(whole.all()), `seed ${seed}`);
      assert.deepEqual(texts(changed.related(found)), texts(whole.related(expected)), `seed ${seed}`);
    }
  }
});
