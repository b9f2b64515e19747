import { test } from "node:test";
import { surviveKills } from "../support/kills.ts";
import { seedOfTest } from "../support/seed.ts";
import { withPodwright } from "../support/podwright.ts";

test("after 200 kills of the engine at random moments among 20 rich pods nothing ran twice, out of order or too often, and nothing remains", async () => {
  await withPodwright(async (podwright) => surviveKills(podwright, { seed: seedOfTest(), kills: 200, pods: 20 }));
});
