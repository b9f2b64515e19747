import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { testContainer, testPod, testSandbox, testStatus } from "../../test/support/observed.ts";
import { RecordedStatsFiles } from "../../test/support/stats.ts";
import { runtimeWays } from "../stats/runtime-ways.ts";
import { StatsCollector } from "../stats/collector.ts";
import { statsPod } from "../stats/stats-pods.ts";
import { nodeGauges } from "./node-gauges.ts";

const podCgroup = "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-poduid_1.slice";

function recordedMachine(): RecordedStatsFiles {
  const files = new RecordedStatsFiles({ version: 2, root: "/cg" });
  files.addRootCgroup();
  files.addCgroup(podCgroup);
  files.texts.set("/proc/meminfo", "MemTotal: 1000 kB\nMemFree: 100 kB\n");
  files.texts.set("/proc/stat", "cpu  1 2 3\ncpu0 1 2 3\ncpu1 1 2 3\ncpu10 1 2 3\nbtime 1763000000\n");
  return files;
}

test("gauges show the kernel's values, for pods only on demand", async () => {
  const [clock, files] = [new ManualClock(), recordedMachine()];
  const pod = statsPod(testPod(), testStatus([testSandbox({})], [testContainer({})]), {
    cgroupRoot: "/",
    cgroupDriver: "systemd",
    runtime: runtimeWays("containerd"),
  });
  assert.ok(pod);
  const all = new StatsCollector({ clock, files, pods: () => [pod], system: async () => [] });
  const stats = { sample: async () => await all.collect("resources") };
  const gauges = nodeGauges({ clock, files, stats }, { directory: "/var/lib/kubelet", maxPods: 110 });

  const alone = await gauges.sample(false);
  assert.deepEqual(alone.capacity, { cpuCores: 3, memoryBytes: 1_024_000, diskBytes: 1000, maxPods: 110 });
  assert.deepEqual([alone.memoryBytes, alone.diskBytes, alone.pods.size], [512_000, 500, 0]);
  const usage = Number(/^usage_usec (\d+)$/m.exec(files.texts.get("/cg/cpu.stat") ?? "")?.[1]);
  assert.equal(alone.cpuSeconds, usage / 1e6);
  const cheap = files.reads;

  const { pods } = await gauges.sample(true);
  const own = pods.get(pod.ref.uid);
  assert.equal(own?.cpuSeconds, usage / 1e6);
  assert.ok((own?.memoryBytes ?? 0) > 0);
  assert.ok(files.reads > 2 * cheap, "pods cost more than the machine alone");
});
