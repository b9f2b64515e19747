import assert from "node:assert/strict";
import { test } from "node:test";
import { podManifest, politeSleep } from "../support/manifests.ts";
import { hung, instances, killed, startsSince, surviveOutage } from "../support/outages.ts";
import { until, withPodwright } from "../support/podwright.ts";

test("pods survive 20 s without containerd", async () => {
  await withPodwright(async (podwright) => surviveOutage(podwright, killed, 20_000));
});

test("pods survive 20 s of a containerd that hangs", async () => {
  await withPodwright(async (podwright) => surviveOutage(podwright, hung, 20_000));
});

test("a private containerd that stays down is started again, and its pods keep running", async () => {
  await withPodwright(async (podwright) => {
    await podwright.succeed("run", "--detach", await podwright.manifest("web.yaml", podManifest("web", politeSleep)));
    const before = instances(await podwright.pods());
    const seq = await podwright.lastSeq();
    await podwright.kill(await podwright.containerdPid());
    await until("containerd", async () => (await podwright.containerdPid()) !== undefined, 60_000);
    await until(
      "the runtime to answer again",
      async () => (await podwright.journal()).some((entry) => entry.seq > seq && entry.what === "RelistRecovered"),
      30_000,
    );
    assert.deepEqual(instances(await podwright.pods()), before);
    assert.deepEqual(startsSince(await podwright.journal(), seq), []);
  });
});
