import { test } from "node:test";
import { compareWorlds } from "../support/differential.ts";
import { seedOfTest } from "../support/seed.ts";
import { withEngine } from "../support/engine.ts";

test("300 random pods have the same results on a real containerd as in the simulator", async () => {
  await withEngine(async (podwright) => compareWorlds(podwright, seedOfTest(), 300));
});
