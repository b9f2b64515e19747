import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { testContainer, testPod, testSandbox, testStatus } from "../../test/support/observed.ts";
import { RecordedStatsFiles } from "../../test/support/stats.ts";
import { containerId, sandboxId } from "../base/ids.ts";
import { cadvisorView } from "./cadvisor-view.ts";
import { StatsCollector } from "./collector.ts";
import { resourceFamilies } from "./resource-metrics.ts";
import { runtimeWays } from "./runtime-ways.ts";
import { type StatsNaming, statsPod, type StatsPod } from "./stats-pods.ts";
import { SystemCgroups } from "./system-cgroups.ts";
import { summaryOf } from "./summary.ts";

const naming = { cgroupRoot: "/", cgroupDriver: "systemd", runtime: runtimeWays("containerd") } as const;
const podCgroup = "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-poduid_1.slice";

function runningPod(ways: StatsNaming = naming): StatsPod {
  const pod = testPod();
  const created = { createdAt: 1_763_000_000_000_000_000n };
  const status = testStatus(
    [testSandbox({ ...created, id: sandboxId("s1") })],
    [testContainer({ ...created, id: containerId("c1"), name: "web" })],
  );
  const found = statsPod(pod, status, ways);
  assert.ok(found);
  return found;
}

function machine(): RecordedStatsFiles {
  const files = new RecordedStatsFiles({ version: 2, root: "/cg" });
  files.addRootCgroup();
  for (const path of [podCgroup, `${podCgroup}/cri-containerd-c1.scope`, `${podCgroup}/cri-containerd-s1.scope`]) {
    files.addCgroup(path);
  }
  files.children.set(`/cg${podCgroup}`, ["cri-containerd-c1.scope", "cri-containerd-s1.scope"]);
  files.texts.set(
    "/proc/meminfo",
    "MemTotal: 1000 kB\nMemFree: 100 kB\nInactive(file): 300 kB\nSwapTotal: 50 kB\nSwapFree: 20 kB\n",
  );
  files.texts.set("/proc/stat", "btime 1763000000\n");
  files.texts.set("/proc/loadavg", "0 0 0 1/77 5\n");
  files.texts.set("/proc/sys/kernel/pid_max", "32768\n");
  files.texts.set("/proc/sys/kernel/threads-max", "1000\n");
  files.texts.set("/proc/20411/net/dev", "  eth0: 1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n");
  return files;
}

test("nothing is read without a request, and requests within a second share a sample", async () => {
  const [clock, files] = [new ManualClock(), machine()];
  const collector = new StatsCollector({ clock, files, pods: () => [runningPod()], system: async () => [] });
  assert.equal(files.reads, 0);
  const [first, second] = await Promise.all([collector.collect("resources"), collector.collect("resources")]);
  assert.equal(first, second);
  const once = files.reads;
  assert.ok(once > 0);
  await collector.collect("resources");
  assert.equal(files.reads, once);
  await collector.collect("summary");
  const deeper = files.reads;
  assert.ok(deeper > once);
  assert.notEqual(await collector.collect("resources"), first);
  assert.equal(files.reads, deeper);
  await clock.advance(1_000);
  await collector.collect("resources");
  assert.ok(files.reads > deeper);
});

test("cgroups of containers are found by ID, and rates are available from the second sample on", async () => {
  const [clock, files] = [new ManualClock(), machine()];
  const collector = new StatsCollector({ clock, files, pods: () => [runningPod()], system: async () => [] });
  const before = await collector.collect("summary");
  const [pod] = before.pods;
  assert.equal(pod?.containers[0]?.cgroup, `${podCgroup}/cri-containerd-c1.scope`);
  assert.equal(pod?.sandbox?.cgroup, `${podCgroup}/cri-containerd-s1.scope`);
  assert.equal(pod?.containers[0]?.sample.nanoCores, undefined);
  assert.deepEqual(
    pod?.network?.interfaces.map(({ name, rxBytes, txErrors }) => [name, rxBytes, txErrors]),
    [["eth0", 1, 7]],
  );
  await clock.advance(2_000);
  files.texts.set(`/cg${podCgroup}/cri-containerd-c1.scope/cpu.stat`, "usage_usec 1220619\n");
  const after = await collector.collect("summary");
  assert.equal(after.pods[0]?.containers[0]?.sample.nanoCores, 500_000_000);
});

test("neither CRI-O's monitor of a container nor a mount of its files is taken for the container", async () => {
  const [clock, files] = [new ManualClock(), machine()];
  const pods = [runningPod()];
  const cgroupAmong = async (names: readonly string[]): Promise<string | undefined> => {
    for (const name of names) files.addCgroup(`${podCgroup}/${name}`);
    files.children.set(`/cg${podCgroup}`, names);
    const collector = new StatsCollector({ clock, files, pods: () => pods, system: async () => [] });
    const found = (await collector.read("resources")).pods[0]?.containers[0]?.cgroup;
    return found?.slice(podCgroup.length + 1);
  };
  const others = ["crio-conmon-c1.scope", "var-lib-containers-c1-merged.mount", "crio-conmon-c1", "other-c11.scope"];
  assert.equal(await cgroupAmong(others), undefined);
  for (const name of ["crio-c1.scope", "crio-c1", "c1"]) assert.equal(await cgroupAmong([...others, name]), name);
});

test("processes below a container's cgroup are its own where it has none itself", async () => {
  const [clock, files] = [new ManualClock(), machine()];
  const scope = (id: string): string => `/cg${podCgroup}/cri-containerd-${id}.scope`;
  const put = (cgroup: string, pids: readonly number[], children: readonly string[] = []): void => {
    files.texts.set(`${cgroup}/cgroup.procs`, pids.map((pid) => `${pid}\n`).join(""));
    files.children.set(cgroup, children);
  };
  put(scope("s1"), [], ["container"]);
  put(`${scope("s1")}/container`, [31]);
  put(scope("c1"), [], ["system.slice", "init.scope"]);
  put(`${scope("c1")}/system.slice`, [], ["ssh.service"]);
  put(`${scope("c1")}/system.slice/ssh.service`, [43, 44]);
  put(`${scope("c1")}/init.scope`, [41]);
  files.texts.set("/proc/31/net/dev", "  eth0: 9 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0\n");
  const collector = new StatsCollector({ clock, files, pods: () => [runningPod()], system: async () => [] });
  const [pod] = (await collector.read("summary")).pods;
  assert.deepEqual(pod?.sandbox?.sample.pids, [31]);
  assert.deepEqual(pod?.containers[0]?.sample.pids, [41, 43, 44]);
  assert.equal(pod?.network?.interfaces[0]?.rxBytes, 9);
});

test("the summary of recorded files is exact", async () => {
  const [clock, files] = [new ManualClock(Date.UTC(2026, 10, 20, 14, 2, 0, 700)), machine()];
  const pods = [runningPod()];
  const collector = new StatsCollector({ clock, files, pods: () => pods, system: async () => [] });
  const { node, pods: shown } = summaryOf("node1", await collector.collect("resources"));
  const time = "2026-11-20T14:02:00Z";
  assert.deepEqual(node, {
    nodeName: "node1",
    systemContainers: [],
    startTime: "2025-11-13T02:13:20Z",
    cpu: { time, usageCoreNanoSeconds: 220_619_000 },
    memory: {
      time,
      availableBytes: 500 * 1024,
      usageBytes: 600 * 1024,
      workingSetBytes: 500 * 1024,
      rssBytes: 400 * 1024,
      pageFaults: 42,
      majorPageFaults: 2,
    },
    swap: { time, swapAvailableBytes: 20 * 1024, swapUsageBytes: 30 * 1024 },
  });
  const cpuAndMemory = {
    cpu: { time, usageCoreNanoSeconds: 220_619_000 },
    memory: {
      time,
      availableBytes: 67_108_864 - (31_207_424 - 14_999_552),
      usageBytes: 31_207_424,
      workingSetBytes: 31_207_424 - 14_999_552,
      rssBytes: 114_688,
      pageFaults: 1301,
      majorPageFaults: 3,
    },
    swap: { time, swapAvailableBytes: 33_554_432 - 4096, swapUsageBytes: 4096 },
  };
  assert.deepEqual(shown, [
    {
      podRef: { name: "pod", namespace: "default", uid: "uid-1" },
      startTime: "2025-11-13T02:13:20Z",
      containers: [{ name: "web", startTime: "2025-11-13T02:13:20Z", ...cpuAndMemory }],
      ...cpuAndMemory,
    },
  ]);
});

test("a v2 machine's memory is the anonymous and file memory of its root cgroup, without that of the kernel", async () => {
  const [clock, files] = [new ManualClock(), machine()];
  const collector = new StatsCollector({ clock, files, pods: () => [], system: async () => [] });
  const { memory } = (await collector.read("everything")).machine.sample;
  assert.deepEqual(
    [memory?.usage, memory?.workingSet, memory?.cache, memory?.limit, memory?.swap],
    [600, 500, 200, 1000, 30].map((kibibytes) => kibibytes * 1024),
  );
  // Old kernels show none of it there.
  files.texts.delete("/cg/memory.stat");
  const old = (await collector.read("everything")).machine.sample.memory;
  assert.deepEqual([old?.usage, old?.workingSet], [900 * 1024, 600 * 1024]);
});

test("the summary's values other than CPU and memory are exact for recorded files", async () => {
  const [clock, files] = [new ManualClock(Date.UTC(2026, 10, 20, 14, 2, 0, 700)), machine()];
  const pressure =
    "some avg10=1.50 avg60=0.25 avg300=0.10 total=1234\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=99\n";
  for (const resource of ["cpu", "memory", "io"]) files.texts.set(`/proc/pressure/${resource}`, pressure);
  files.texts.set("/proc/self/net/dev", "  eth0: 11 2 3 4 0 0 0 0 55 6 7 8 0 0 0 0\n");
  const pods = [runningPod()];
  const collector = new StatsCollector({ clock, files, pods: () => pods, system: async () => [] });
  const time = "2026-11-20T14:02:00Z";
  const used = { time, availableBytes: 1, capacityBytes: 2, usedBytes: 3, inodesFree: 4, inodes: 5, inodesUsed: 6 };
  const volume = { ...used, name: "scratch" };
  const containers = new Map([
    ["c1", { name: "app", rootfs: { ...used, usedBytes: 7 }, logs: { ...used, usedBytes: 8 } }],
  ]);
  const { node, pods: shown } = summaryOf("node1", await collector.collect("summary"), {
    fs: used,
    imageFs: { ...used, usedBytes: 9 },
    containerFs: undefined,
    pods: new Map([["uid-1", { volumes: [volume], volumesMs: 1, ephemeral: { ...used, usedBytes: 10 }, containers }]]),
  });
  const psi = {
    some: { total: 1234, avg10: 1.5, avg60: 0.25, avg300: 0.1 },
    full: { total: 99, avg10: 0, avg60: 0, avg300: 0 },
  };
  assert.deepEqual([node.cpu?.psi, node.memory?.psi, node.io], [psi, psi, { time, psi }]);
  const device = { name: "eth0", rxBytes: 11, rxErrors: 3, txBytes: 55, txErrors: 7 };
  assert.deepEqual(node.network, { time, ...device, interfaces: [device] });
  assert.deepEqual(node.fs, used);
  assert.deepEqual(node.runtime, { imageFs: { ...used, usedBytes: 9 } });
  assert.deepEqual(node.rlimit, { time, maxpid: 1000, curproc: 77 });

  const [pod] = shown;
  const own = { name: "eth0", rxBytes: 1, rxErrors: 3, txBytes: 5, txErrors: 7 };
  assert.deepEqual(pod?.network, { time, ...own, interfaces: [own] });
  assert.deepEqual(pod?.volume, [volume]);
  assert.deepEqual(pod?.["ephemeral-storage"], { ...used, usedBytes: 10 });
  assert.deepEqual(pod?.process_stats, { process_count: 2 });
  const waited = { some: { total: 744_175, avg10: 3.57, avg60: 1.06, avg300: 0.24 } };
  const none = { total: 0, avg10: 0, avg60: 0, avg300: 0 };
  const io = {
    time,
    psi: { some: { ...none, total: 10_871 }, full: { ...none, total: 10_851 } },
  };
  for (const each of [pod, pod?.containers[0]]) {
    assert.deepEqual(each?.cpu?.psi, { ...waited, full: { ...waited.some, total: 743_980 } });
    assert.deepEqual(each?.memory?.psi, { some: none, full: none });
    assert.deepEqual(each?.io, io);
  }
  assert.deepEqual(pod?.containers[0]?.rootfs, { ...used, usedBytes: 7 });
  assert.deepEqual(pod?.containers[0]?.logs, { ...used, usedBytes: 8 });
});

test("without cgroupsPerQOS a pod is its containers together, and has no series of its own", async () => {
  const [clock, files] = [new ManualClock(), machine()];
  const names = ["run-containerd-c1.mount", "cri-containerd-c1.scope", "cri-containerd-s1.scope"];
  files.children.set("/cg/system.slice", names);
  for (const name of names) files.addCgroup(`/system.slice/${name}`);
  const pod = runningPod({ ...naming, cgroupRoot: undefined });
  const collector = new StatsCollector({ clock, files, pods: () => [pod], system: async () => [] });
  const sample = await collector.collect("everything");
  const [shown] = summaryOf("node1", sample).pods;
  assert.equal(shown?.cpu?.usageCoreNanoSeconds, 220_619_000);
  assert.equal(shown?.memory?.workingSetBytes, 31_207_424 - 14_999_552);
  assert.equal(shown?.swap?.swapUsageBytes, 4096);
  const families = resourceFamilies(sample).filter(({ name }) => name.startsWith("pod_"));
  assert.deepEqual(
    families.map(({ samples }) => samples.length),
    [1, 1, 1],
  );
  const { cgroups } = await cadvisorView(files, sample, { fileSystems: [], version: "1" });
  assert.deepEqual(
    cgroups.map(({ labels }) => labels.id),
    ["/", "/system.slice/cri-containerd-s1.scope", "/system.slice/cri-containerd-c1.scope"],
  );
});

test("a pod between two restarts of its containers has only the series of its cgroup and its sandbox", async () => {
  const [clock, files] = [new ManualClock(), machine()];
  const exited = testStatus([testSandbox({ id: sandboxId("s1") })], [testContainer({ state: "exited" })]);
  const pod = statsPod(testPod(), exited, naming);
  assert.ok(pod);
  const collector = new StatsCollector({ clock, files, pods: () => [pod], system: async () => [] });
  const sample = await collector.collect("everything");
  assert.deepEqual(summaryOf("node1", sample).pods, []);
  const families = resourceFamilies(sample).filter(({ name }) => /^(?:pod|container)_/u.test(name));
  assert.ok(families.every(({ samples }) => samples.length === 0));
  const { cgroups } = await cadvisorView(files, sample, { fileSystems: [], version: "1" });
  const shown = cgroups.map(({ labels, network }) => [labels.id, labels.pod, network?.interfaces.length ?? 0]);
  assert.deepEqual(shown, [
    ["/", "", 0],
    [podCgroup, "pod", 0],
    [`${podCgroup}/cri-containerd-s1.scope`, "pod", 1],
  ]);
});

test("a pod without a ready sandbox is not measured", () => {
  const lost = testStatus([testSandbox({ ready: false })], [testContainer()]);
  assert.equal(statsPod(testPod(), lost, naming), undefined);
});

test("the cgroups of QoS classes have series, but are no system containers", async () => {
  const [clock, files] = [new ManualClock(), machine()];
  for (const cgroup of ["/kubepods", "/kubepods/burstable"]) files.addCgroup(cgroup);
  files.changes.set("/cg/kubepods/burstable", 5000);
  const system = new SystemCgroups(
    { clock, files, processes: { ownPid: 7, list: async () => [] } },
    {
      ...{ kubelet: "/own", runtime: "/runtime", misc: undefined, pods: "/kubepods" },
      ...{ qosClasses: ["/kubepods/burstable", "/kubepods/besteffort"], runtimeProgram: "", startedMs: 0 },
    },
  );
  const collector = new StatsCollector({ clock, files, pods: () => [], system: async () => await system.find() });
  const sample = await collector.collect("everything");
  const { cgroups } = await cadvisorView(files, sample, { fileSystems: [], version: "1" });
  const shown = cgroups.map(({ labels: { id, pod }, startedMs, sample: { cpu } }) => [
    id,
    pod,
    startedMs,
    cpu !== undefined,
  ]);
  assert.deepEqual(shown.slice(1), [
    ["/kubepods", "", undefined, true],
    ["/kubepods/burstable", "", 5000, true],
  ]);
  const { systemContainers } = summaryOf("node1", sample).node;
  assert.deepEqual(
    systemContainers?.map(({ name }) => name),
    ["pods"],
  );
});
