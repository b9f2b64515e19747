import { test } from "node:test";
import {
  Dice,
  idleConnections,
  nonsenseFrames,
  nonsenseRequests,
  resetStorm,
  slowReaders,
  Target,
  unfinishedHeaders,
} from "../support/attacks.ts";
import { seedOfTest } from "../support/seed.ts";

/** Of the server, in MiB: of 10,000 connections it keeps 4096. */
const memoryLimit = 900;

test("20,000 invalid requests, 10,000 idle connections and a gigabyte of headers affect no other client", async (t) => {
  const seed = seedOfTest();
  await using target = await Target.start();
  const dice = new Dice(seed);
  for (let turn = 0; turn < 10; turn++) {
    await t.test(`nonsense, turn ${turn} (seed ${seed})`, async () => {
      await nonsenseRequests(target, dice, 1500);
      await nonsenseFrames(target, dice, 500);
      await target.isWell(`turn ${turn}`, memoryLimit);
    });
  }
  await t.test("storms of resets", () => resetStorm(target, 50_000));
  await t.test("200 slow readers", () => slowReaders(target, 200, memoryLimit));
  await t.test("a gigabyte of headers", () => unfinishedHeaders(target, 1000, memoryLimit));
  await t.test("10,000 idle connections", async () => {
    const each = await idleConnections(target, 10_000, memoryLimit);
    console.log(`${each.toFixed(0)} MiB of memory for a thousand`);
  });
  await target.isWell("the end", memoryLimit);
});
