import assert from "node:assert/strict";
import { test } from "node:test";
import { deaf, runs } from "../../test/support/sim-scene.ts";
import { ShutdownScene } from "../../test/support/shutdown-scene.ts";
import { SimRandom } from "../sim/random.ts";

const byThree = [
  { priority: 0, graceSeconds: 10 },
  { priority: 100, graceSeconds: 8 },
  { priority: 1000, graceSeconds: 6 },
];
const critical = 2_000_000_000;

/** Problems of a shutdown at a random moment, with kills of podwright and all kinds of pods. */
async function playShutdown(seed: number): Promise<string[]> {
  const random = new SimRandom(seed);
  const scene = new ShutdownScene(byThree, seed);
  await scene.boot();
  await scene.pass(3000);
  const pods = Array.from({ length: random.integer(1, 8) }, (_, index) => `pod${index}`);
  const priorities = new Map(pods.map((uid) => [uid, random.pick([0, 0, 50, 100, 999, 1000, critical])]));
  for (const uid of pods) {
    const container = random.pick([runs, deaf])("main");
    const spec = { priority: priorities.get(uid), terminationGracePeriodSeconds: random.integer(0, 40) };
    scene.add(uid, { containers: [container], ...spec }, random.pick(["api", "api", "file"]));
    await scene.pass(random.integer(0, 3000));
  }
  await scene.pass(random.integer(0, 20_000));
  using _other = random.chance(0.5) ? scene.login.lock(() => true) : undefined;
  const announcedMs = scene.clock.nowMs;
  scene.login.announce();
  const kills = random.chance(0.5);
  if (kills) {
    await scene.pass(random.integer(100, 15_000));
    if (scene.powerOffs.length === 0) {
      scene.node.kill();
      await scene.pass(random.integer(0, 2000));
      if (scene.powerOffs.length === 0) scene.node.start();
    }
  }
  await scene.pass(60_000);
  const problems: string[] = [];
  const [off] = scene.powerOffs;
  if (off === undefined) problems.push("the machine never goes off");
  if (!kills && off?.why === "time over" && _other === undefined) problems.push("its pods take all of the time");
  const told = scene.terminated();
  const group = (uid: string): number =>
    byThree.findLastIndex(({ priority }) => priority <= (priorities.get(uid) ?? 0));
  for (const uid of pods) {
    const early = pods.find((other) => group(other) > group(uid) && (told[other] ?? Infinity) < (told[uid] ?? 0));
    if (early !== undefined && !kills) problems.push(`${early} is ended before ${uid}, which counts less`);
  }
  const late = scene.starts.filter(({ atMs }) => atMs > announcedMs + 200 && atMs <= (off?.atMs ?? Infinity));
  for (const { uid } of late) if (told[uid] !== undefined && kills) problems.push(`${uid} starts in the shutdown`);
  await scene.boot();
  await scene.pass(90_000);
  for (const uid of pods) {
    const isStatic = scene.node.desired.get(uid)?.metadata.annotations?.["kubernetes.io/config.source"] === "file";
    const wasEnded = told[uid] !== undefined;
    const shouldRun = isStatic || !wasEnded;
    if (scene.runs(uid) !== shouldRun) problems.push(`${uid} ${shouldRun ? "does not run" : "runs"} after the boot`);
    const [phase, reason] = scene.told(uid);
    if (!shouldRun && (phase !== "Failed" || reason !== "Terminated")) problems.push(`${uid} is ${phase}, ${reason}`);
  }
  return problems;
}

test("kills of podwright change neither a shutdown's order nor its time, and no ended pod starts", async () => {
  const broken: string[] = [];
  for (let seed = 1; seed <= 25; seed++) {
    for (const problem of await playShutdown(seed)) broken.push(`seed ${seed}: ${problem}`);
  }
  assert.deepEqual(broken, []);
});
