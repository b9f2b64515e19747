import { test } from "node:test";
import {
  Dice,
  hugeHeaders,
  idleConnections,
  nonsenseFrames,
  nonsenseRequests,
  resetStorm,
  slowloris,
  slowReaders,
  Target,
  unfinishedHeaders,
} from "./support/attacks.ts";
import { seedOfTest } from "./support/seed.ts";

/** Of the server, in MiB: it uses about 110 without requests. */
const memoryLimit = 400;

test("hostile clients affect no others, and memory stays within its bounds", async (t) => {
  const seed = seedOfTest();
  await using target = await Target.start();
  const dice = new Dice(seed);
  await target.isWell("the start", memoryLimit);
  await t.test(`nonsense paths, queries and headers (seed ${seed})`, () => nonsenseRequests(target, dice, 150));
  await t.test(`nonsense frames on granted streams (seed ${seed})`, () => nonsenseFrames(target, dice, 60));
  await t.test("headers that are too long or too many", () => hugeHeaders(target));
  await t.test("storms of resets on HTTP/2", () => resetStorm(target, 3000));
  await t.test("answers that nobody reads", () => slowReaders(target, 24, memoryLimit));
  await t.test("headers that never end", () => slowloris(target, 60, memoryLimit));
  await t.test("headers that never end and are long", () => unfinishedHeaders(target, 150, memoryLimit));
  await t.test("500 idle connections", async () => {
    await idleConnections(target, 500, memoryLimit);
  });
  await target.isWell("the end", memoryLimit);
});
