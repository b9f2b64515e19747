import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { after, afterEach, test } from "node:test";
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
  const check = (low: number): void => {
    const min = (path: string): string => cgroupValues(path, "memory.min")["memory.min"];
    const lowOf = (path: string): string => cgroupValues(path, "memory.low")["memory.low"];
    assert.equal(min(podSlice(guaranteed, ["kubepods"])), String(64 * mi));
    assert.equal(lowOf(podSlice(burstable, ["kubepods", "burstable"])), String(low));
    assert.equal(min("kubepods.slice"), String(64 * mi + low));
    assert.equal(lowOf("kubepods.slice/kubepods-burstable.slice"), String(low));
  };
  check(32 * mi);
  run("systemctl", ["daemon-reload"]);
  check(32 * mi);
  writeBurstable("48Mi");
  const scope = scopeOf(burstable, "burstable");
  const isResized = async (): Promise<boolean> => cgroupValues(scope, "memory.low")["memory.low"] === String(48 * mi);
  await until("the container to be resized", isResized, 60_000);
  await until(
    "the pod's cgroup to follow",
    async () => {
      return (
        cgroupValues(podSlice(burstable, ["kubepods", "burstable"]), "memory.low")["memory.low"] === String(48 * mi)
      );
    },
    60_000,
  );
  check(48 * mi);
  assert.equal(cgroupValues(scope, "memory.high")["memory.high"], String(Math.floor((62.4 * mi) / 4096) * 4096));
});

test("reserved cgroups of systemd are limited, in the kernel and in systemd", async () => {
  await node.restart(`${memoryQos}
enforceNodeAllocatable: [pods, system-reserved, kube-reserved-compressible]
systemReserved: { cpu: 500m, memory: 256Mi, pid: "1000" }
kubeReserved: { cpu: 250m, memory: 128Mi }
systemReservedCgroup: /podsystem.slice
kubeReservedCgroup: /podkube.slice`);
  const check = (): void => {
    const system = cgroupValues("podsystem.slice", "cpu.weight", "memory.max", "memory.min", "pids.max");
    const wanted = {
      "cpu.weight": "20",
      "memory.max": String(256 * mi),
      "memory.min": String(256 * mi),
      "pids.max": "1000",
    };
    assert.deepEqual(system, wanted);
    assert.deepEqual(cgroupValues("podkube.slice", "cpu.weight", "memory.max"), {
      "cpu.weight": "10",
      "memory.max": "max",
    });
  };
  check();
  run("systemctl", ["daemon-reload"]);
  check();
});

test("processes of the root cgroup are moved, and kernel settings set", async () => {
  writeFileSync("/proc/sys/kernel/panic", "0");
  const sleeper = Number(run("sh", ["-c", "sleep 600 >/dev/null 2>&1 & echo $!"]));
  writeFileSync("/sys/fs/cgroup/cgroup.procs", String(sleeper));
  await node.restart(`cgroupRoot: /\nsystemCgroups: /podstray\nkubeletCgroups: /podkubelet`);
  const placeOf = (pid: number): string => readFileSync(`/proc/${pid}/cgroup`, "utf8").trim();
  await until("the process to be moved", async () => placeOf(sleeper) === "0::/podstray", 60_000);
  assert.equal(placeOf(node.pid()), "0::/podkubelet");
  assert.equal(placeOf(1).includes("podstray"), false);
  assert.equal(readFileSync("/proc/sys/kernel/panic", "utf8").trim(), "10");
  run("kill", [`${sleeper}`]);
});

test("with protectKernelDefaults a setting that differs keeps the kubelet from starting", async () => {
  writeFileSync("/proc/sys/kernel/panic", "0");
  const restarted = node.restart("protectKernelDefaults: true").catch((error: unknown) => error);
  const isTold = async (): Promise<boolean> =>
    node.log().includes("invalid kernel flag: kernel/panic, expected value: 10, actual value: 0");
  await until("the kubelet to say why it does not start", isTold, 60_000);
  writeFileSync("/proc/sys/kernel/panic", "10");
  await restarted;
  await node.answers();
});
