import assert from "node:assert/strict";
import { after, afterEach, test } from "node:test";
import { valueOf } from "../support/exposition.ts";
import { politeSleep } from "../support/manifests.ts";
import { sleep, until } from "../support/podwright.ts";
import { KubeletService } from "./kubelet-service.ts";
import {
  cgroupIsThere,
  cgroupValues,
  containerScope,
  machineState,
  podSlice,
  podWithResources as limited,
  run,
} from "./machine.ts";

const configuration = "podPidsLimit: 200";
const node = await KubeletService.start(configuration);
afterEach(() => node.clear());
after(() => node[Symbol.asyncDispose]());

const ofBurstable = ["kubepods", "burstable"];
const half = { cpu: "500m", memory: "64Mi" };
const burstable = { requests: { cpu: "100m", memory: "32Mi" }, limits: half };

/** Eats memory in a process beside the container's first one. */
const glutton = "tail /dev/zero; echo survived; while true; do sleep 1; done";

test("each pod's cgroup has systemd's names, in slices that systemd knows", async () => {
  node.write("guaranteed", limited("guaranteed", { requests: half, limits: half }));
  node.write("burstable", limited("burstable", burstable));
  node.write("besteffort", limited("besteffort", undefined));
  for (const [name, parent] of [
    ["guaranteed", []],
    ["burstable", ["burstable"]],
    ["besteffort", ["besteffort"]],
  ] as const) {
    const pod = await node.pod(name);
    const slice = podSlice(pod, ["kubepods", ...parent]);
    console.log(`${name}: ${slice}`);
    assert.ok(cgroupIsThere(`${slice}/${containerScope(pod)}`), "its container is in it");
    const unit = slice.slice(slice.lastIndexOf("/") + 1);
    assert.equal(run("systemctl", ["show", "--property=ActiveState", "--value", unit]), "active");
  }
});

test("limits of pods hold in the kernel and in systemd, also after systemd has reloaded its configuration", async () => {
  node.write("burstable", limited("burstable", burstable));
  node.write("other", limited("other", { requests: { cpu: "200m" } }));
  const [pod, other] = [await node.pod("burstable"), await node.pod("other")];
  const check = (): void => {
    const slice = podSlice(pod, ofBurstable);
    const ofPod = cgroupValues(slice, "cpu.weight", "cpu.max", "memory.max", "pids.max");
    // KEP-2254: 102 shares of 100m.
    const wanted = { "cpu.weight": "4", "cpu.max": "50000 100000", "memory.max": "67108864", "pids.max": "200" };
    assert.deepEqual(ofPod, wanted);
    const ofContainer = cgroupValues(`${slice}/${containerScope(pod)}`, "cpu.max", "memory.max");
    assert.deepEqual(ofContainer, { "cpu.max": "50000 100000", "memory.max": "67108864" });
    const unlimited = cgroupValues(podSlice(other, ofBurstable), "cpu.weight", "cpu.max", "memory.max");
    assert.deepEqual(unlimited, { "cpu.weight": "8", "cpu.max": "max 100000", "memory.max": "max" });
    // All that burstable pods ask for together; best effort the least there is.
    assert.equal(cgroupValues("kubepods.slice/kubepods-burstable.slice", "cpu.weight")["cpu.weight"], "12");
    assert.equal(cgroupValues("kubepods.slice/kubepods-besteffort.slice", "cpu.weight")["cpu.weight"], "1");
    assert.notEqual(cgroupValues("kubepods.slice", "memory.max")["memory.max"], "max");
    console.log(JSON.stringify(ofPod));
  };
  check();
  run("systemctl", ["daemon-reload"]);
  check();
});

test("a pod's slice is removed with the pod, from the tree and from systemd", async () => {
  node.write("burstable", limited("burstable", burstable));
  const slice = podSlice(await node.pod("burstable"), ofBurstable);
  await node.clear();
  assert.equal(cgroupIsThere(slice), false);
  const unit = slice.slice(slice.lastIndexOf("/") + 1);
  assert.equal(run("systemctl", ["show", "--property=ActiveState", "--value", unit]), "inactive");
});

test("a container's disk writes are counted by the kernel, and the machine's with their time", async () => {
  const pod = limited("writer", undefined, `dd if=/dev/zero of=/data/file bs=1M count=8 conv=fsync; ${politeSleep}`);
  const [app] = pod.spec.containers;
  const containers = [{ ...app, volumeMounts: [{ name: "data", mountPath: "/data" }] }];
  node.write("writer", { ...pod, spec: { ...pod.spec, containers, volumes: [{ name: "data", emptyDir: {} }] } });
  await node.pod("writer");
  const wroteAll = async (): Promise<boolean> => {
    const labels = { container: "app", device: "/dev/vda" };
    return (
      (valueOf(await node.metrics("/metrics/cadvisor"), "container_fs_writes_bytes_total", labels) ?? 0) >= 8 << 20
    );
  };
  await until("the kernel to count what was written", wroteAll);
  const families = await node.metrics("/metrics/cadvisor");
  const ofContainer = { container: "app", device: "/dev/vda" };
  const ofMachine = { id: "/", device: "/dev/vda" };
  assert.ok((valueOf(families, "container_fs_writes_total", ofContainer) ?? 0) > 0);
  assert.equal(valueOf(families, "container_fs_sector_writes_total", ofContainer), undefined, "counted by nobody");
  const sectors = valueOf(families, "container_fs_sector_writes_total", ofMachine) ?? 0;
  console.log(`${sectors} sectors written`);
  assert.ok(sectors >= (8 << 20) / 512);
  for (const name of ["write_seconds_total", "io_time_seconds_total", "io_time_weighted_seconds_total"]) {
    assert.ok((valueOf(families, `container_fs_${name}`, ofMachine) ?? 0) > 0, name);
  }
});

test("a container that exceeds its memory limit ends as a whole and is reported as OOM-killed", async () => {
  const pod = limited("glutton", { limits: { memory: "32Mi" } }, glutton);
  node.write("glutton", { ...pod, spec: { ...pod.spec, restartPolicy: "Never" } });
  const running = await node.pod("glutton", ({ containers: [app] }) => app?.state !== "waiting");
  const scope = `${podSlice(running, ofBurstable)}/${containerScope(running)}`;
  if (cgroupIsThere(scope)) assert.equal(cgroupValues(scope, "memory.oom.group")["memory.oom.group"], "1");
  const ended = await node.pod("glutton", ({ containers: [app] }) => app?.state === "terminated");
  const { exitCode, reason } = ended.containers[0] ?? {};
  console.log(`exit code ${exitCode}, reason ${reason}`);
  assert.deepEqual([exitCode, reason], [137, "OOMKilled"]);
});

test("with singleProcessOOMKill only the process that exceeded the limit ends", async () => {
  await node.restart(`${configuration}\nsingleProcessOOMKill: true`);
  try {
    node.write("glutton", limited("glutton", { limits: { memory: "32Mi" } }, glutton));
    const pod = await node.pod("glutton");
    const scope = `${podSlice(pod, ofBurstable)}/${containerScope(pod)}`;
    assert.equal(cgroupValues(scope, "memory.oom.group")["memory.oom.group"], "0");
    const killed = async (): Promise<boolean> =>
      /oom_kill [1-9]/.test(cgroupValues(scope, "memory.events")["memory.events"]);
    await until("the kernel to kill", killed);
    await sleep(3000);
    const [app] = (await node.pod("glutton")).containers;
    assert.deepEqual([app?.state, app?.restartCount], ["running", 0]);
  } finally {
    await node.restart(configuration);
  }
});

test("pods survive kill -9 of podwright, which adopts them with their limits", async () => {
  node.write("burstable", limited("burstable", burstable));
  const pod = await node.pod("burstable");
  const pid = node.pid();
  run("kill", ["-9", `${pid}`]);
  await until("systemd to start it again", async () => ![0, pid].includes(node.pid()));
  await node.answers();
  await sleep(3000);
  const adopted = await node.pod("burstable");
  assert.equal(adopted.uid, pod.uid);
  assert.equal(adopted.containers[0]?.id, pod.containers[0]?.id);
  assert.equal(adopted.containers[0]?.restartCount, 0);
  const slice = podSlice(pod, ofBurstable);
  assert.ok(cgroupIsThere(`${slice}/${containerScope(pod)}`), machineState());
  assert.equal(cgroupValues(slice, "memory.max")["memory.max"], "67108864");
  console.log(
    `podwright ${pid} killed, ${node.pid()} goes on with container ${adopted.containers[0]?.id.slice(0, 13)}`,
  );
});
