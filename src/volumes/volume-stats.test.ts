import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import type { PodUid } from "../base/ids.ts";
import type { JournalInput } from "../journal/entry.ts";
import { FileError } from "../ports/files.ts";
import { silentLog } from "../sim/machine.ts";
import { SimRandom } from "../sim/random.ts";
import { StorageWaits } from "./storage-waits.ts";
import { type MeteredVolume, VolumeStats } from "./volume-stats.ts";
import type { VolumeFigures } from "./volume-meter.ts";

const periodMs = 60_000;
const uid = "u" as PodUid;
const pod = { namespace: "ns", name: "p", uid };
const figures: VolumeFigures = {
  ...{ capacityBytes: 100, availableBytes: 60, usedBytes: 40 },
  ...{ inodes: 10, inodesFree: 6, inodesUsed: 4 },
};

class Meter {
  readonly source = "statfs";
  readonly reads: number[] = [];
  answer: () => Promise<VolumeFigures | undefined> = async () => figures;

  read = async (): Promise<VolumeFigures | undefined> => {
    this.reads.push(clock.monotonic());
    return await this.answer();
  };
}

let clock: ManualClock;
let entries: JournalInput[];
let waits: StorageWaits;
let stats: VolumeStats;
let controller: AbortController;
let run: Promise<void>;
const durations: string[] = [];

function volume(podVolume: string, meter: Meter, owner = uid): MeteredVolume {
  const claim = { namespace: "ns", name: `claim-${podVolume}` };
  return { pod: { ...pod, uid: owner }, podVolume, name: `pv-${podVolume}`, driver: "local", claim, meter };
}

beforeEach(() => {
  clock = new ManualClock();
  entries = [];
  const journal = { record: (entry: JournalInput) => entries.push(entry) };
  waits = new StorageWaits(clock, journal, silentLog);
  const measured = (source: string): number => durations.push(source);
  stats = new VolumeStats({ clock, random: new SimRandom(1), journal, log: silentLog, waits, measured }, periodMs);
  controller = new AbortController();
  run = stats.run(controller.signal);
});

afterEach(async () => {
  controller.abort(new Error("over"));
  await run;
  assert.deepEqual(clock.waits, []);
});

test("a volume is measured soon after it is set up, then every one to two periods", async () => {
  const meter = new Meter();
  stats.add(volume("a", meter));
  stats.add(volume("a", meter));
  await clock.advance(2_000);
  assert.equal(meter.reads.length, 1);
  const [measured] = stats.of(uid);
  assert.deepEqual([measured?.podVolume, measured?.claim], ["a", { namespace: "ns", name: "claim-a" }]);
  assert.deepEqual(measured?.figures, figures);
  await clock.advance(20 * periodMs);
  const gaps = meter.reads.slice(1).map((at, index) => at - (meter.reads[index] ?? 0));
  assert.ok(gaps.length >= 10, `${gaps.length}`);
  assert.ok(
    gaps.every((gap) => gap >= periodMs && gap <= 2 * periodMs),
    gaps.join(" "),
  );
  assert.ok(new Set(gaps).size > 1, "they do not keep step");
  assert.ok(durations.every((source) => source === "statfs"));
});

test("a driver's volumes are measured some at a time, and all of them though some hang", async () => {
  const meters = Array.from({ length: 50 }, () => new Meter());
  const answers = meters.map(() => Promise.withResolvers<VolumeFigures>());
  for (const [index, meter] of meters.entries()) {
    meter.answer = () => answers[index]?.promise ?? Promise.reject(new Error("no answer"));
    stats.add(volume(`v${index}`, meter, `u${Math.floor(index / 10)}` as PodUid));
  }
  const other = new Meter();
  stats.add({ ...volume("other", other), driver: "other" });
  const asked = (): number => meters.filter(({ reads }) => reads.length > 0).length;
  while (asked() === 0) await clock.advance(10);
  assert.deepEqual([asked(), other.reads.length], [20, 1], "another driver's are not delayed");
  for (const answer of answers.slice(0, 19)) answer.resolve(figures);
  await clock.advance(10);
  assert.equal(asked(), 20, "one hangs");
  await clock.advance(1_000);
  assert.equal(asked(), 40, "and delays the next no longer than this");
  stats.forget("u4" as PodUid);
  for (const answer of answers) answer.resolve(figures);
  await clock.advance(1_000);
  const times = meters.map(({ reads }) => reads.length);
  assert.deepEqual(times.slice(0, 40), Array(40).fill(1), "each is measured once");
  assert.deepEqual(times.slice(40), Array(10).fill(0), "and one that is gone never");
});

test("a volume that does not respond delays no other's statistics, and is named; its own become outdated", async () => {
  const [silent, well] = [new Meter(), new Meter()];
  stats.add(volume("silent", silent));
  stats.add(volume("well", well));
  await clock.advance(2_000);
  const released = Promise.withResolvers<VolumeFigures>();
  silent.answer = () => released.promise;
  await clock.advance(4 * periodMs);
  const of = (): string[] => stats.of(uid).map(({ podVolume }) => podVolume);
  assert.deepEqual(of(), ["silent", "well"], "what was known is shown a while longer");
  assert.equal(silent.reads.length, 2, "it is asked once at a time");
  assert.deepEqual(
    waits.hanging.map(({ volume: name, operation }) => [name, operation]),
    [["pv-silent", "measure"]],
  );
  await clock.advance(2 * periodMs);
  assert.deepEqual(of(), ["well"], "not for ever");
  assert.ok(well.reads.length >= 4, `${well.reads.length}`);
  released.resolve({ ...figures, usedBytes: 41 });
  await clock.advance(0);
  assert.deepEqual([of(), waits.hanging], [["silent", "well"], []]);
});

test("a silence lasts over measurements that time out; other failures are not silences", async () => {
  const meter = new Meter();
  meter.answer = () => Promise.reject(new FileError("ETIMEDOUT", "/x", "ETIMEDOUT"));
  stats.add(volume("a", meter));
  await clock.advance(3 * periodMs);
  assert.equal(waits.hanging.length, 1);
  meter.answer = () => Promise.reject(new FileError("EIO", "/x", "EIO"));
  await clock.advance(2 * periodMs);
  assert.deepEqual([waits.hanging, stats.of(uid)], [[], []]);
});

test("volumes of a terminating pod are dropped, also while being measured", async () => {
  const meter = new Meter();
  const released = Promise.withResolvers<VolumeFigures>();
  meter.answer = () => released.promise;
  stats.add(volume("a", meter));
  await clock.advance(periodMs);
  assert.equal(waits.hanging.length, 1);
  stats.forget(uid);
  assert.deepEqual(waits.hanging, []);
  released.resolve(figures);
  await clock.advance(10 * periodMs);
  assert.deepEqual([stats.of(uid), meter.reads.length, waits.hanging], [[], 1, []]);
});

test("an abnormal volume is an Event with each measurement, until it is healthy again", async () => {
  const meter = new Meter();
  const isSo = (abnormal: boolean, message: string): void => {
    meter.answer = async () => ({ ...figures, condition: { abnormal, message } });
  };
  isSo(true, "worn out");
  stats.add(volume("data", meter));
  await clock.advance(2_000);
  await clock.advance(2 * periodMs);
  isSo(false, "fine");
  await clock.advance(2 * periodMs);
  const [first, second, ...rest] = entries.map(({ what, message }) => `${what} ${message}`);
  assert.deepEqual([first, second], Array(2).fill("VolumeConditionAbnormal Volume data: worn out"));
  assert.equal(rest.at(-1), "VolumeConditionOver Volume data: worn out");
});

test("a volume that cannot be measured has no statistics", async () => {
  const meter = new Meter();
  meter.answer = async () => undefined;
  stats.add(volume("a", meter));
  await clock.advance(periodMs);
  assert.deepEqual([stats.of(uid), meter.reads.length], [[], 1]);
});

test("volumes from before the measurements begin are measured too, and nothing is due of a pod that is gone", async () => {
  const [early, gone] = [new Meter(), new Meter()];
  controller.abort(new Error("over"));
  await run;
  stats.add(volume("early", early));
  controller = new AbortController();
  run = stats.run(controller.signal);
  stats.add(volume("gone", gone, "other" as PodUid));
  stats.forget("other" as PodUid);
  await clock.advance(2 * periodMs);
  assert.ok(early.reads.length >= 1);
  assert.deepEqual(gone.reads, []);
});
