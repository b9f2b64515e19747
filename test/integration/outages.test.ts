import { describe, test } from "node:test";
import { hung, killed, surviveOutage } from "../support/outages.ts";
import { withPodwright } from "../support/podwright.ts";

// Two at a time: most of the time they wait.
describe("a runtime that is unavailable", { concurrency: 2 }, () => {
  test("pods survive containerd's death, ps responds meanwhile, nothing starts twice, and what ended is restarted afterwards", async () => {
    await withPodwright(async (podwright) => surviveOutage(podwright, killed, 8_000));
  });

  test("pods survive a containerd that hangs, ps responds meanwhile, and what ended is restarted once it responds", async () => {
    await withPodwright(async (podwright) => surviveOutage(podwright, hung, 5_000));
  });
});
