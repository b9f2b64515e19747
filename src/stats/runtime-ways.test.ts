import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { testContainer, testPod, testSandbox, testStatus } from "../../test/support/observed.ts";
import { silentLog } from "../../test/support/sources.ts";
import { RecordedStatsFiles } from "../../test/support/stats.ts";
import { containerId, sandboxId } from "../base/ids.ts";
import type { Cri } from "../ports/cri.ts";
import { cadvisorView } from "./cadvisor-view.ts";
import { runtimeWays } from "./runtime-ways.ts";
import { statsPod } from "./stats-pods.ts";
import { StorageStats } from "./storage.ts";
import { VolumeUsage } from "./volume-usage.ts";

/** The labels of a pod with a sandbox and a container that was restarted twice. */
async function labels(runtimeName: string): Promise<Record<string, string>[]> {
  const status = testStatus(
    [testSandbox({ id: sandboxId("s1"), attempt: 1 })],
    [testContainer({ id: containerId("c1"), name: "web", image: "web:1", restartCount: 2 })],
  );
  const naming = { cgroupRoot: "/", cgroupDriver: "systemd", runtime: runtimeWays(runtimeName) } as const;
  const pod = statsPod(testPod(), status, naming);
  assert.ok(pod?.containers[0]);
  const sample = { timeMs: 0, pids: [] };
  const machine = { sample, bootedMs: 0, swapTotalBytes: 0, swapFreeBytes: 0, network: undefined };
  const node = {
    timeMs: 0,
    machine: { ...machine, tasks: 0, maxTasks: 0, ioPressure: undefined },
    system: [],
    pods: [
      {
        pod,
        sample: undefined,
        sandbox: { cgroup: "/s", sample },
        containers: [{ container: pod.containers[0], cgroup: "/c", sample }],
        network: undefined,
      },
    ],
  };
  const files = new RecordedStatsFiles({ version: 2, root: "/cg" });
  const { cgroups } = await cadvisorView(files, node, { fileSystems: [], version: "1" }, new Map([["s1", "pause:1"]]));
  return cgroups.slice(1).map((view) => ({ ...view.labels }));
}

test("a container's name label is its ID, on CRI-O CRI-O's name for it, and its sandbox is the container POD", async () => {
  const owner = { pod: "pod", namespace: "default" };
  assert.deepEqual(await labels("containerd"), [
    { ...owner, id: "/s", name: "s1", image: "pause:1", container: "" },
    { ...owner, id: "/c", name: "c1", image: "web:1", container: "web" },
  ]);
  assert.deepEqual(await labels("cri-o"), [
    { ...owner, id: "/s", name: "k8s_POD_pod_default_uid-1_1", image: "pause:1", container: "POD" },
    { ...owner, id: "/c", name: "k8s_web_pod_default_uid-1_2", image: "web:1", container: "web" },
  ]);
});

test("image storage is the runtime's own figure; on CRI-O, which measures only its index, the sum of the image sizes", async () => {
  let lists = 0;
  const cri = {
    runtime: { listContainerStats: async () => ({ stats: [] }) },
    images: {
      imageFsInfo: async () => {
        const usage = { timestamp: 1n, usedBytes: { value: 31_820n }, fsId: { mountpoint: "/var/lib/containers" } };
        return { imageFilesystems: [usage], containerFilesystems: [] };
      },
      listImages: async () => {
        lists++;
        return { images: [{ size: 100_000_000n }, { size: 60_000_000n }] };
      },
    },
  } as unknown as Cri;
  const used = async (runtimeName: string): Promise<number | undefined> => {
    const clock = new ManualClock(0);
    const files = new RecordedStatsFiles({ version: 2, root: "/cg" });
    const { signal } = new AbortController();
    const volumes = new VolumeUsage({ clock, files }, { rootDirectory: "/var/lib/kubelet", periodMs: 1000 }, signal);
    const directories = { rootDirectory: "/var/lib/kubelet", podLogsRoot: "/var/log/pods" };
    const runtime = runtimeWays(runtimeName);
    const layers = { measure: async () => new Map<string, never>() };
    const deps = { clock, files, cri, log: silentLog, volumes, layers, external: () => [], ...directories, runtime };
    const storage = new StorageStats(deps, signal);
    const { imageFs, containerFs } = await storage.collect([]);
    assert.equal(containerFs?.usedBytes, imageFs?.usedBytes);
    return imageFs?.usedBytes;
  };
  assert.deepEqual([await used("containerd"), lists], [31_820, 0]);
  assert.deepEqual([await used("cri-o"), lists], [160_000_000, 1]);
});
