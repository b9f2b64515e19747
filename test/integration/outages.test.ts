import { describe, test } from "node:test";
import { hung, killed, surviveOutage } from "../support/outages.ts";
import { withPodwright } from "../support/podwright.ts";

// Two at a time: most of the time they wait.
describe("a runtime that goes away", { concurrency: 2 }, () => {
  test("pods survive containerd's death, ps answers meanwhile, nothing is started twice, what died is restarted after it", async () => {
    await withPodwright(async (podwright) => surviveOutage(podwright, killed, 8_000));
  });

  test("pods survive a containerd that hangs, ps answers meanwhile, and what died is restarted once it goes on", async () => {
    await withPodwright(async (podwright) => surviveOutage(podwright, hung, 5_000));
  });
});
