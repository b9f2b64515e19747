import { test } from "node:test";
import { killPoints, surviveEndsAtCalls } from "../support/csi-kills.ts";

const moments = `${killPoints.length} times, before, after and behind each call to a driver`;

test(`killed ${moments}, podwright starts and ends every pod, and nothing is left`, async () => {
  await surviveEndsAtCalls("podwright", killPoints);
});

test(`ended ${moments}, a driver delays its pods, and nothing is left of them`, async () => {
  await surviveEndsAtCalls("driver", killPoints);
});
