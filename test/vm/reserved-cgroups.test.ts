import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { after, afterEach, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { until } from "../support/podwright.ts";
import { KubeletService } from "./kubelet-service.ts";
import { cgroupValues, containerScope, podSlice, podWithResources as limited, run } from "./machine.ts";

const mi = 2 ** 20;
const memoryQos = "featureGates: { MemoryQoS: true }\nmemoryReservationPolicy: TieredReservation";

run("sh", ["-c", "systemctl start podsystem.slice podkube.slice"]);
const node = await KubeletService.start(memoryQos);
afterEach(() => node.clear());
after(async () => {
  await node[Symbol.asyncDispose]();
  run("systemctl", ["stop", "podsystem.slice", "podkube.slice"]);
});

/**
 * Waits until `read` returns the wanted value, and a second more, because systemd also writes to the cgroups of its
 * units.
 */
async function becomes(what: string, read: () => unknown, wanted: unknown): Promise<void> {
  const isSo = async (): Promise<boolean> => isDeepStrictEqual(read(), wanted);
  await until(what, isSo).catch(() => assert.deepEqual(read(), wanted, what));
  await sleep(1000);
  assert.deepEqual(read(), wanted, what);
}

test("memory of pods is protected and throttled, also after a resize", async () => {
  const half = { cpu: "100m", memory: "64Mi" };
  node.write("guaranteed", limited("guaranteed", { requests: half, limits: half }));
  const writeBurstable = (memory: string): void => {
    const pod = limited("burstable", { requests: { memory }, limits: { memory: "64Mi" } });
    // With another UID it would be another pod.
    node.write("burstable", { ...pod, metadata: { name: "burstable", uid: "5e1f0000-0000-4000-8000-000000000001" } });
  };
  writeBurstable("32Mi");
  const [guaranteed, burstable] = [await node.pod("guaranteed"), await node.pod("burstable")];
  const files = ["memory.min", "memory.low", "memory.high"] as const;
  const scopeOf = (pod: typeof burstable, ...parents: readonly string[]): string =>
    `${podSlice(pod, ["kubepods", ...parents])}/${containerScope(pod)}`;
  assert.deepEqual(Object.values(cgroupValues(scopeOf(guaranteed), ...files)), [String(64 * mi), "0", "max"]);
  // 32 Mi and 90 % of the other 32, in whole pages.
  const high = String(Math.floor((60.8 * mi) / 4096) * 4096);
  assert.deepEqual(Object.values(cgroupValues(scopeOf(burstable, "burstable"), ...files)), [
    "0",
    String(32 * mi),
    high,
  ]);
  const protection = (): readonly string[] => [
    cgroupValues(podSlice(guaranteed, ["kubepods"]), "memory.min")["memory.min"],
    cgroupValues(podSlice(burstable, ["kubepods", "burstable"]), "memory.low")["memory.low"],
    cgroupValues("kubepods.slice", "memory.min")["memory.min"],
    cgroupValues("kubepods.slice/kubepods-burstable.slice", "memory.low")["memory.low"],
  ];
  const isProtected = async (low: number): Promise<void> => {
    await becomes("memory to be protected", protection, [64 * mi, low, 64 * mi + low, low].map(String));
  };
  await isProtected(32 * mi);
  run("systemctl", ["daemon-reload"]);
  await isProtected(32 * mi);
  writeBurstable("48Mi");
  const scope = scopeOf(burstable, "burstable");
  await becomes("the container to be resized", () => cgroupValues(scope, "memory.low"), {
    "memory.low": String(48 * mi),
  });
  await isProtected(48 * mi);
  assert.equal(cgroupValues(scope, "memory.high")["memory.high"], String(Math.floor((62.4 * mi) / 4096) * 4096));
});

test("reserved cgroups of systemd are limited, in the kernel and in systemd", async () => {
  await node.restart(`${memoryQos}
enforceNodeAllocatable: [pods, system-reserved, kube-reserved-compressible]
systemReserved: { cpu: 500m, memory: 256Mi, pid: "1000" }
kubeReserved: { cpu: 250m, memory: 128Mi }
systemReservedCgroup: /podsystem.slice
kubeReservedCgroup: /podkube.slice`);
  const limits = (): readonly object[] => [
    cgroupValues("podsystem.slice", "cpu.weight", "memory.max", "memory.min", "pids.max"),
    cgroupValues("podkube.slice", "cpu.weight", "memory.max"),
  ];
  const wanted = [
    { "cpu.weight": "20", "memory.max": String(256 * mi), "memory.min": String(256 * mi), "pids.max": "1000" },
    { "cpu.weight": "10", "memory.max": "max" },
  ];
  await becomes("the reserved cgroups to be limited", limits, wanted);
  run("systemctl", ["daemon-reload"]);
  await becomes("the limits to last", limits, wanted);
});

test("processes of the root cgroup are moved, and kernel settings set", async () => {
  writeFileSync("/proc/sys/kernel/panic", "0");
  const sleeper = Number(run("sh", ["-c", "sleep 600 >/dev/null 2>&1 & echo $!"]));
  writeFileSync("/sys/fs/cgroup/cgroup.procs", String(sleeper));
  await node.restart(`cgroupRoot: /\nsystemCgroups: /podstray\nkubeletCgroups: /podkubelet`);
  const placeOf = (pid: number): string => readFileSync(`/proc/${pid}/cgroup`, "utf8").trim();
  await until("the process to be moved", async () => placeOf(sleeper) === "0::/podstray");
  await becomes("the kubelet to be moved", () => placeOf(node.pid()), "0::/podkubelet");
  assert.equal(placeOf(1).includes("podstray"), false);
  assert.equal(readFileSync("/proc/sys/kernel/panic", "utf8").trim(), "10");
  run("kill", [`${sleeper}`]);
});

test("with protectKernelDefaults a setting that differs prevents the kubelet's start", async () => {
  writeFileSync("/proc/sys/kernel/panic", "0");
  const restarted = node.restart("protectKernelDefaults: true").catch((error: unknown) => error);
  const isTold = async (): Promise<boolean> =>
    node.log().includes("invalid kernel flag: kernel/panic, expected value: 10, actual value: 0");
  await until("the kubelet to say why it does not start", isTold);
  writeFileSync("/proc/sys/kernel/panic", "10");
  await restarted;
  await node.answers();
});
