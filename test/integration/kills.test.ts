import { test } from "node:test";
import { surviveKills } from "../support/kills.ts";
import { seedOfTest } from "../support/seed.ts";
import { withPodwright } from "../support/podwright.ts";

test("after 6 kills of the engine at random moments among 12 rich pods nothing ran twice, out of order or too often, and nothing remains", async () => {
  await withPodwright(async (podwright) => surviveKills(podwright, { seed: seedOfTest(), kills: 6, pods: 12 }));
});
