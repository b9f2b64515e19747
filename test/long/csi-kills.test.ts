import { test } from "node:test";
import { killPoints, surviveKillsAtCalls } from "../support/csi-kills.ts";

test(`after ${killPoints.length} kills, before, after and behind each call to a driver, every pod starts and ends, and nothing is left`, async () => {
  await surviveKillsAtCalls(killPoints);
});
