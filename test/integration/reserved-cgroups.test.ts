import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { appendFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { needsRoot } from "../../src/linux/processes/testing.ts";
import { withKubeletNode } from "../support/kubelet-node.ts";
import { machine } from "../support/machine.ts";
import { podManifest, politeSleep } from "../support/manifests.ts";

const mi = 2 ** 20;
const needsV1 = needsRoot() || (existsSync("/sys/fs/cgroup/memory") ? false : "needs cgroup v1");

async function value(controller: string, path: string, file: string): Promise<string> {
  return (await readFile(`/sys/fs/cgroup/${controller}${path}/${file}`, "utf8")).trim();
}

/** A process of some MiB in a cgroup. */
async function hungry(path: string): Promise<ChildProcess & Disposable> {
  const script = 'read go; x=$(head -c 40000000 /dev/zero | tr "\\0" x); echo; read end';
  const child = spawn("sh", ["-c", script], { stdio: ["pipe", "pipe", "ignore"] });
  await writeFile(`/sys/fs/cgroup/memory${path}/cgroup.procs`, `${child.pid}`);
  child.stdin.write("\n");
  await once(child.stdout, "data");
  return Object.assign(child, { [Symbol.dispose]: () => void child.kill("SIGKILL") });
}

test(
  "reserved cgroups are limited, the kubelet is moved, a rejected limit of all pods stops none, and a missing cgroup prevents the start",
  { skip: needsV1 },
  async () => {
    await withKubeletNode(async (node) => {
      const { podwright } = node;
      const { cgroupRoot } = podwright.layout;
      const [system, kube, kubepods] = ["system", "kube", "kubepods"].map((name) => `${cgroupRoot}/${name}`);
      assert.ok(system !== undefined && kube !== undefined && kubepods !== undefined);
      for (const path of [system, kube, kubepods]) await machine.cgroups.apply(path, {});
      const meminfo = await readFile("/proc/meminfo", "utf8");
      const capacity = Number(/MemTotal: +(\d+)/u.exec(meminfo)?.[1]) * 1024;
      const configuration = `enforceNodeAllocatable: [pods, system-reserved, kube-reserved-compressible]
systemReserved: { cpu: 250m, memory: 64Mi, pid: "500" }
kubeReserved: { cpu: 500m, memory: "${capacity - 96 * mi}" }
systemReservedCgroup: ${system}
kubeReservedCgroup: ${kube}
kubeletCgroups: ${kube}/agent`;
      await appendFile(join(podwright.layout.stateDirectory, "kubelet.yaml"), `${configuration}\n`);
      // More than the 32 MiB that are left for pods is in use when the kubelet starts.
      using _user = await hungry(kubepods);
      await node.startContainerd();
      await node.write("web.yaml", podManifest("web", politeSleep));
      const kubelet = node.startKubelet();
      await node.answers();
      await podwright.waitFor("the pod", (pods) => pods.some(({ ready }) => ready));

      const [shares, bytes, pids] = [
        await value("cpu", system, "cpu.shares"),
        await value("memory", system, "memory.limit_in_bytes"),
        await value("pids", system, "pids.max"),
      ];
      assert.deepEqual([shares, bytes, pids], ["256", String(64 * mi), "500"]);
      assert.equal(await value("cpu", kube, "cpu.shares"), "512");
      assert.ok(Number(await value("memory", kube, "memory.limit_in_bytes")) > 2 ** 60, "compressible resources alone");
      const places = (await readFile(`/proc/${kubelet.child.pid}/cgroup`, "utf8")).split("\n");
      const elsewhere = places.filter((line) => /^[1-9]/u.test(line) && !line.endsWith(`${kube}/agent`));
      assert.deepEqual(elsewhere, []);
      assert.match(kubelet.stderr, /memory limit of a cgroup is below its usage/);
      const told = (await podwright.journal()).filter(({ what }) => what.includes("NodeAllocatableEnforce"));
      assert.deepEqual(
        told.map(({ what, message }) => `${what} ${message.replace(/: EBUSY.*/u, ": EBUSY")}`).toSorted(),
        [
          `FailedNodeAllocatableEnforcement Failed to update Node Allocatable Limits "${kubepods}": EBUSY`,
          `NodeAllocatableEnforced Updated limits on kube reserved cgroup ${kube}`,
          `NodeAllocatableEnforced Updated limits on system reserved cgroup ${system}`,
        ],
      );

      await node.remove("web.yaml");
      await podwright.waitFor("the pod to go", (pods) => pods.length === 0);
      kubelet.child.kill("SIGTERM");
      assert.equal((await kubelet.ended).exitCode, 0);

      await machine.cgroups.remove(system);
      const { exitCode, stderr } = await node.startKubelet().ended;
      assert.equal(exitCode, 3);
      assert.match(stderr, /Failed to enforce System Reserved Cgroup Limits on .* has some missing paths: /);
      assert.match(stderr, /create .*\/system with all controllers before the kubelet starts/);
    });
  },
);

test("with cgroupsPerQOS false pods run without cgroups of their own", { skip: needsV1 }, async () => {
  await withKubeletNode(async (node) => {
    const { podwright } = node;
    const file = join(podwright.layout.stateDirectory, "kubelet.yaml");
    await appendFile(file, "cgroupsPerQOS: false\nenforceNodeAllocatable: []\n");
    await node.startContainerd();
    await node.write("web.yaml", podManifest("web", politeSleep));
    const kubelet = node.startKubelet();
    await node.answers();
    await podwright.waitFor("the pod", (pods) => pods.some(({ ready }) => ready));
    assert.equal(await machine.cgroups.exists(podwright.layout.cgroupRoot), false);
    const id = (await podwright.container("web-node1", "app")).id ?? "";
    const places = await readFile(`/proc/${await podwright.firstProcess(id)}/cgroup`, "utf8");
    assert.match(places, new RegExp(`memory:/k8s.io/${id}`, "u"));
    await node.remove("web.yaml");
    await podwright.waitFor("the pod to go", (pods) => pods.length === 0);
    kubelet.child.kill("SIGTERM");
    assert.equal((await kubelet.ended).exitCode, 0);
  });
});
