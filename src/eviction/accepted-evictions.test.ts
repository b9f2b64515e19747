import assert from "node:assert/strict";
import { test } from "node:test";
import { observed, thresholdOf } from "../../test/support/eviction.ts";
import { termsOf } from "../../test/support/eviction-scene.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { silentLog } from "../../test/support/sources.ts";
import { MemoryFiles } from "../sim/files.ts";
import { AcceptedEvictions } from "./accepted-evictions.ts";
import type { EvictionChange } from "./earlier-start.ts";
import type { EvictionTerms } from "./eviction-terms.ts";
import type { Threshold } from "./thresholds.ts";

const hard = thresholdOf("memory.available", "100Mi");
const short = observed({ "memory.available": 50n << 20n });

/** A machine whose node is started again and again. */
class Starts {
  readonly files = new MemoryFiles(new ManualClock());
  readonly warnings: unknown[][] = [];

  async next(terms: EvictionTerms, asks = true): Promise<AcceptedEvictions> {
    const log = { ...silentLog, warn: (...said: unknown[]) => void this.warnings.push(said) };
    const accepted = new AcceptedEvictions({ files: this.files, log, directory: "/d" }, terms, asks);
    await accepted.load();
    return accepted;
  }
}

/** What changes for a threshold when this is short, after a start with some settings and one with others. */
async function changeOf(
  before: EvictionTerms,
  now: EvictionTerms,
  [threshold = hard]: readonly Threshold[] = now.thresholds,
): Promise<EvictionChange | undefined> {
  const starts = new Starts();
  await starts.next(before);
  const accepted = await starts.next(now);
  accepted.judge(short, "one", 0);
  return accepted.changeOf(threshold);
}

test("an eviction counts as changed unless an earlier threshold of its signal is met, too", async () => {
  const now = termsOf({ thresholds: [hard] });
  const first = await new Starts().next(now);
  first.judge(short, "one", 0);
  assert.deepEqual([first.changeOf(hard), first.changeOfLimits, first.waits], [undefined, undefined, false]);
  assert.equal(await changeOf(now, now), undefined);
  assert.equal(await changeOf(termsOf({ thresholds: [thresholdOf("memory.available", "60Mi")] }), now), undefined);
  assert.equal(await changeOf(termsOf({ thresholds: [thresholdOf("memory.available", "10Mi")] }), now), "changed");
  assert.equal(await changeOf(termsOf({ thresholds: [] }), now), "changed");
});

test("an earlier soft threshold counts once its grace period has passed", async () => {
  const starts = new Starts();
  await starts.next(termsOf({ thresholds: [thresholdOf("memory.available", "100Mi", 3_600_000)] }));
  const accepted = await starts.next(termsOf({ thresholds: [hard] }));
  const changes = [0, 3_599_000, 3_600_000].map((nowMs) => {
    accepted.judge(short, "one", nowMs);
    return accepted.changeOf(hard);
  });
  assert.deepEqual(changes, ["changed", "changed", undefined]);
});

test("a minimum reclaim that was added counts as a change, and so does containerfs by the thresholds it has", async () => {
  const disk = thresholdOf("nodefs.available", "100Mi");
  const starts = new Starts();
  await starts.next(termsOf({ thresholds: [disk] }));
  const now = { ...disk, minReclaim: { part: 0.2 } };
  const accepted = await starts.next(termsOf({ thresholds: [now] }));
  const containers = { ...now, signal: "containerfs.available" as const };
  const seen = (mebibytes: bigint): (EvictionChange | undefined)[] => {
    const left = mebibytes << 20n;
    accepted.judge(observed({ "nodefs.available": left, "containerfs.available": left }), "one", 0);
    return [accepted.changeOf(now), accepted.changeOf(containers)];
  };
  assert.deepEqual(seen(50n), [undefined, undefined]);
  assert.deepEqual(seen(150n), ["changed", "changed"], "only the minimum reclaim is missing");
});

test("by another figure of memory it is unknown what the earlier thresholds would do", async () => {
  const thresholds = [hard, thresholdOf("nodefs.available", "100Mi")];
  const terms = termsOf({ thresholds });
  const byMemAvailable = { countsMemAvailable: true };
  assert.equal(await changeOf(termsOf({ thresholds }, byMemAvailable), terms), "unknown");
  assert.equal(await changeOf(termsOf({ thresholds: [] }, byMemAvailable), terms), "changed");
  const [, ofDisk] = thresholds;
  assert.equal(
    await changeOf(termsOf({ thresholds }, byMemAvailable), terms, [ofDisk ?? hard]),
    "changed",
    "it is not met",
  );
});

test("limits that the last start did not enforce count as changed, also without thresholds", async () => {
  const starts = new Starts();
  const without = termsOf({ thresholds: [hard], enforcesStorageLimits: false });
  await starts.next(without);
  const accepted = await starts.next(termsOf({ thresholds: [] }));
  assert.deepEqual([accepted.changeOfLimits, accepted.waits], ["changed", true]);
  assert.equal((await starts.next(without)).changeOfLimits, undefined, "nothing was confirmed meanwhile");
  await (await starts.next(termsOf({ thresholds: [] }))).confirm();
  assert.equal((await starts.next(termsOf({ thresholds: [] }))).changeOfLimits, undefined);
});

test("a first start that evicts no pod at all counts as one, too", async () => {
  const nothing = termsOf({ thresholds: [], enforcesStorageLimits: false });
  const now = termsOf({ thresholds: [hard] });
  assert.equal(await changeOf(nothing, now), "changed");
});

test("an unreadable file is kept aside, and all evictions wait until they are confirmed, over restarts", async () => {
  const starts = new Starts();
  const { files } = starts;
  const now = termsOf({ thresholds: [hard] });
  await files.makeDirectory("/d", 0o700);
  await files.write("/d/eviction.json", "{", 0o600);
  for (const _start of [1, 2]) {
    const accepted = await starts.next(now);
    accepted.judge(short, "one", 0);
    assert.deepEqual([accepted.changeOf(hard), accepted.changeOfLimits, accepted.waits], ["unknown", "unknown", true]);
  }
  const accepted = await starts.next(now);
  await accepted.confirm();
  assert.deepEqual([accepted.changeOf(hard), accepted.waits], [undefined, false]);
  assert.equal(new TextDecoder().decode(await files.read("/d/eviction.json.bad", 100)), "{");
  assert.equal((await starts.next(now)).waits, false);
  assert.deepEqual(
    starts.warnings.map(([message]) => message),
    Array.from({ length: 3 }, () => "cannot read the eviction settings of the last start"),
  );
});

test("where no confirmation is required, an unreadable file is kept aside at once", async () => {
  const starts = new Starts();
  await starts.files.makeDirectory("/d", 0o700);
  await starts.files.write("/d/eviction.json", "{", 0o600);
  const accepted = await starts.next(termsOf({ thresholds: [hard] }), false);
  assert.deepEqual([accepted.changeOf(hard), accepted.waits], [undefined, false]);
  assert.equal(new TextDecoder().decode(await starts.files.read("/d/eviction.json.bad", 100)), "{");
  assert.equal((await starts.next(termsOf({ thresholds: [hard] }))).waits, false);
  assert.equal(starts.warnings.length, 1);
});

test("settings that evict no pod which the last ones would spare wait for nothing, in whatever order they are", async () => {
  const disk = thresholdOf("nodefs.available", "100Mi");
  const starts = new Starts();
  await starts.next(termsOf({ thresholds: [hard, disk] }));
  for (const thresholds of [[disk, hard], [thresholdOf("memory.available", "10Mi")], []]) {
    assert.equal((await starts.next(termsOf({ thresholds }))).waits, false);
  }
  assert.equal((await starts.next(termsOf({ thresholds: [hard] }))).waits, true, "the last start would evict nothing");
});

test("a milder threshold is remembered although another one waits for a confirmation", async () => {
  const disk = (amount: string): Threshold => thresholdOf("nodefs.available", amount);
  const mild = thresholdOf("memory.available", "10Mi");
  const starts = new Starts();
  await starts.next(termsOf({ thresholds: [hard, disk("100Mi")] }));
  const second = await starts.next(termsOf({ thresholds: [mild, disk("1Gi")] }));
  assert.equal(second.waits, true);
  const third = await starts.next(termsOf({ thresholds: [hard, disk("100Mi")] }));
  third.judge(short, "one", 0);
  assert.deepEqual([third.changeOf(hard), third.waits], ["changed", true], "the last start was satisfied with 10Mi");
  third.judge(observed({ "memory.available": 5n << 20n }), "one", 0);
  assert.equal(third.changeOf(hard), undefined);
  await third.confirm();
  assert.equal((await starts.next(termsOf({ thresholds: [hard, disk("100Mi")] }))).waits, false);
});

test("the confirmed settings are remembered over any number of others", async () => {
  const starts = new Starts();
  const disk = thresholdOf("nodefs.available", "100Mi");
  await starts.next(termsOf({ thresholds: [thresholdOf("memory.available", "1Mi"), disk] }));
  for (let mebibytes = 2; mebibytes < 20; mebibytes++) {
    // Each is stricter for memory and milder for the disk than all before.
    const memory = thresholdOf("memory.available", `${mebibytes}Mi`);
    await starts.next(termsOf({ thresholds: [memory, thresholdOf("nodefs.available", `${100 - mebibytes}Mi`)] }));
  }
  const accepted = await starts.next(termsOf({ thresholds: [hard] }));
  accepted.judge(observed({ "memory.available": 1n << 20n }), "one", 0);
  assert.equal(accepted.changeOf(hard), "changed");
  accepted.judge(observed({ "memory.available": 1n << 19n }), "one", 0);
  assert.equal(accepted.changeOf(hard), undefined);
  const text = new TextDecoder().decode(await starts.files.read("/d/eviction.json", 1 << 16));
  assert.equal((JSON.parse(text) as { readonly later: unknown[] }).later.length, 7);
});

test("more reserved memory counts as a change: it leaves less for all pods together", async () => {
  const ofPods = thresholdOf("allocatableMemory.available", "100Mi");
  const reserving = (mebibytes: number | undefined): EvictionTerms => {
    const reservedMemoryBytes = mebibytes && mebibytes * (1 << 20);
    return { ...termsOf({ thresholds: [ofPods] }), reservedMemoryBytes };
  };
  const changeAt = async (
    before: number | undefined,
    now: number,
    left: bigint,
  ): Promise<EvictionChange | undefined> => {
    const starts = new Starts();
    await starts.next(reserving(before));
    const accepted = await starts.next(reserving(now));
    accepted.judge(observed({ "allocatableMemory.available": left << 20n }), "one", 0);
    return accepted.changeOf(ofPods);
  };
  assert.equal(await changeAt(500, 700, 50n), "changed", "250Mi would be left");
  assert.equal(await changeAt(500, 520, 50n), undefined, "70Mi would be left");
  assert.equal(await changeAt(700, 500, 50n), undefined, "less is reserved");
  assert.equal(await changeAt(undefined, 500, 50n), "unknown", "an earlier version did not record it");
});
