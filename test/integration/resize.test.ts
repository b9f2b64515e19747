import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { podUid } from "../../src/base/ids.ts";
import { decodeCheckpoint, type PodResources } from "../../src/resources/resource-checkpoint.ts";
import type { PodView } from "../../src/server/local-api.ts";
import { cpuWeight } from "../../src/linux/cgroups/cgroups-v2.ts";
import { machine } from "../support/machine.ts";
import { politeSleep } from "../support/manifests.ts";
import { type Podwright, until, withPodwright } from "../support/podwright.ts";

const MiB = 2 ** 20;

interface Amounts {
  readonly cpu: string;
  readonly memory: string;
}

interface Resources {
  readonly requests?: Partial<Amounts>;
  readonly limits?: Partial<Amounts>;
}

/** A pod of containers that end politely, with these resources; `own` are those of the pod as a whole. */
function manifest(
  name: string,
  containers: Readonly<Record<string, Resources>>,
  more: object = {},
  own?: Resources,
): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 5,
      ...(own && { resources: own }),
      containers: Object.entries(containers).map(([container, resources]) => ({
        name: container,
        image: "podwright.local/demo:1",
        command: ["/bin/sh", "-c", politeSleep],
        resources,
        ...more,
      })),
    },
  });
}

async function apply(podwright: Podwright, text: string): Promise<PodView> {
  const { name } = (JSON.parse(text) as { metadata: { name: string } }).metadata;
  await podwright.succeed("run", "--detach", await podwright.manifest(`${name}.json`, text));
  return podwright.pod(name);
}

/** How many entries of that kind the journal has of the pod. */
async function count(podwright: Podwright, uid: string, what: string): Promise<number> {
  return (await podwright.journal()).filter((entry) => entry.what === what && entry.pod?.uid === uid).length;
}

/** Applies another version of a running pod and waits until it was resized. */
async function resize(podwright: Podwright, uid: string, text: string): Promise<void> {
  const before = await count(podwright, uid, "ResizeCompleted");
  await apply(podwright, text);
  const completed = async (): Promise<boolean> => (await count(podwright, uid, "ResizeCompleted")) > before;
  await until("the pod to be resized", completed, 20_000);
}

interface KernelAmounts {
  readonly request: number;
  readonly limit: number;
  readonly MiB: number;
}

/** What the kernel has for the pod and one of its containers: milli CPU of request and limit, bytes of memory. */
async function kernel(podwright: Podwright, { uid }: PodView, containerId: string): Promise<object> {
  const path = `${podwright.layout.cgroupRoot}/kubepods/burstable/pod${uid}`;
  const amounts = async (at: string, requestOf: (shares: number) => number): Promise<KernelAmounts> => {
    const { cpuShares, cpuQuotaMicroseconds: quota, memoryLimitBytes } = (await machine.cgroups.read(at)).resources;
    return { request: requestOf(cpuShares), limit: quota / 100, MiB: memoryLimitBytes / MiB };
  };
  const pod = await amounts(path, milliOf);
  const container = await amounts(`${path}/${containerId}`, (shares) => {
    const curved = milliOf(sharesOfCurve(cpuWeight(shares)));
    return machine.cgroups.version === 2 && curved === pod.request ? curved : milliOf(shares);
  });
  return { pod, container };
}

/** Weights of cgroup v2 are coarser than shares. */
function milliOf(cpuShares: number): number {
  return Math.round((cpuShares * 1000) / 1024 / 50) * 50;
}

/** The shares for which runc (since 1.3.2) and crun (since 1.23) set a weight: no longer by the kubelet's formula. */
function sharesOfCurve(weight: number): number {
  return 2 ** ((Math.sqrt(125 ** 2 + 4 * 612 * (Math.log10(weight) + 7 / 34)) - 125) / 2);
}

async function recorded(podwright: Podwright, file: string, uid: string): Promise<PodResources | undefined> {
  return decodeCheckpoint(await readFile(join(podwright.layout.kubeletRoot, file), "utf8")).get(podUid(uid));
}

describe("resizing running pods", { concurrency: 2 }, () => {
  test("cpu and memory go up and down without a restart, in the kernel and in the record", async () => {
    await withPodwright(async (podwright) => {
      const of = (request: string, limit: string, memory: string): string =>
        manifest("inplace", { app: { requests: { cpu: request, memory: "16Mi" }, limits: { cpu: limit, memory } } });
      const pod = await apply(podwright, of("100m", "200m", "64Mi"));
      const { id } = await podwright.container("inplace", "app");
      const amounts = (request: number, limit: number, memory: number): object => ({ request, limit, MiB: memory });
      const steps = [
        ["300m", "400m", "64Mi", amounts(300, 400, 64)],
        ["300m", "400m", "128Mi", amounts(300, 400, 128)],
        ["100m", "150m", "128Mi", amounts(100, 150, 128)],
        ["200m", "500m", "96Mi", amounts(200, 500, 96)],
      ] as const;
      for (const [request, limit, memory, expected] of steps) {
        await resize(podwright, pod.uid, of(request, limit, memory));
        assert.deepEqual(await kernel(podwright, pod, id), { pod: expected, container: expected });
        const resources = { limits: { cpu: limit, memory }, requests: { cpu: request, memory: "16Mi" } };
        for (const file of ["allocated_pods_state", "actuated_pods_state"]) {
          assert.deepEqual((await recorded(podwright, file, pod.uid))?.containers.get("app"), resources);
        }
      }
      const after = await podwright.container("inplace", "app");
      assert.deepEqual([after.id, after.restartCount, (await podwright.pod("inplace")).uid], [id, 0, pod.uid]);
      assert.equal(await count(podwright, pod.uid, "StartContainer"), 2);
      assert.match(await podwright.succeed("timeline", "inplace"), /resize container app: memory limit 64Mi → 128Mi/u);

      // Another life knows what was granted, and resizes nothing for it.
      await podwright.kill(await podwright.enginePid());
      assert.equal((await apply(podwright, of("200m", "500m", "96Mi"))).uid, pod.uid);
      await resize(podwright, pod.uid, of("200m", "450m", "96Mi"));
      assert.deepEqual((await podwright.container("inplace", "app")).id, id);
    });
  });

  test("a container with that resizePolicy is restarted for memory, but not for cpu", async () => {
    await withPodwright(async (podwright) => {
      const more = { resizePolicy: [{ resourceName: "memory", restartPolicy: "RestartContainer" }] };
      const of = (cpu: string, memory: string): string =>
        manifest("restarts", { app: { requests: { cpu: "100m" }, limits: { cpu, memory } } }, more);
      const pod = await apply(podwright, of("200m", "64Mi"));
      const before = await podwright.container("restarts", "app");
      await resize(podwright, pod.uid, of("300m", "64Mi"));
      assert.equal((await podwright.container("restarts", "app")).id, before.id);
      await resize(podwright, pod.uid, of("300m", "96Mi"));
      const after = await podwright.container("restarts", "app");
      assert.equal(after.restartCount, 1);
      assert.notEqual(after.id, before.id);
      const expected = { request: 100, limit: 300, MiB: 96 };
      assert.deepEqual(await kernel(podwright, pod, after.id), { pod: expected, container: expected });
      assert.match(await podwright.succeed("timeline", "restarts"), /restart container app to resize it, attempt 1/u);
    });
  });

  test("a resize beyond the node's capacity or its free resources is deferred and reported, and granted once there is room", async () => {
    await withPodwright(async (podwright) => {
      const { length: processors } = (await readFile("/proc/cpuinfo", "utf8")).match(/^processor\s*:/gmu) ?? [];
      const all = (processors ?? 1) * 1000;
      const of = (name: string, milli: number): string => manifest(name, { app: { requests: { cpu: `${milli}m` } } });
      const pod = await apply(podwright, of("asks", 100));
      const { id } = await podwright.container("asks", "app");
      const tooMuch = await podwright.run([
        "run",
        "--detach",
        await podwright.manifest("more.json", of("asks", all + 1)),
      ]);
      assert.match(
        tooMuch.stdout + tooMuch.stderr,
        /Node didn't have enough resource: cpu, requested: \d+, used: \d+, capacity: \d+/u,
      );
      assert.match(await podwright.succeed("why", "asks"), /Node didn't have enough resource/u);

      await apply(podwright, of("other", all / 2));
      const deferred = await podwright.run([
        "run",
        "--detach",
        await podwright.manifest("most.json", of("asks", all - 100)),
      ]);
      assert.match(deferred.stdout + deferred.stderr, /Node didn't have enough resource: cpu/u);
      await podwright.succeed("stop", "--grace", "0", "other");
      await until(
        "the deferred resize",
        async () => (await count(podwright, pod.uid, "ResizeCompleted")) === 1,
        20_000,
      );
      assert.equal((await podwright.container("asks", "app")).id, id);
    });
  });

  test("memory in use is not reclaimed: the resize fails with a reason, and completes once it is free", async () => {
    await withPodwright(async (podwright) => {
      const script =
        "trap 'exit 0' TERM; head -c 40000000 /dev/zero > /dev/shm/full; while true; do sleep 1 & wait $!; done";
      const more = { command: ["/bin/sh", "-c", script] };
      const of = (memory: string): string =>
        manifest("full", { app: { requests: { cpu: "50m" }, limits: { memory } } }, more);
      const pod = await apply(podwright, of("128Mi"));
      const { id } = await podwright.container("full", "app");
      await until("the memory to be used", async () => {
        const path = `${podwright.layout.cgroupRoot}/kubepods/burstable/pod${pod.uid}`;
        return (await machine.cgroups.read(path)).memoryUsageBytes > 40_000_000;
      });
      await apply(podwright, of("16Mi"));
      await until("the resize to fail", async () => (await count(podwright, pod.uid, "ResizeError")) > 0, 20_000);
      assert.match(await podwright.succeed("timeline", "full"), /cannot decrease memory limits: attempting to set/u);
      assert.equal((await podwright.container("full", "app")).restartCount, 0);
      await resize(podwright, pod.uid, of("96Mi"));
      assert.equal((await podwright.container("full", "app")).id, id);
    });
  });

  test("an update that is not a valid resize is rejected, and the pod keeps running", async () => {
    await withPodwright(async (podwright) => {
      const limits = { cpu: "200m", memory: "64Mi" };
      const pod = await apply(podwright, manifest("fixed", { app: { requests: { cpu: "100m" }, limits } }));
      const refused = async (resources: Resources): Promise<string> => {
        const path = await podwright.manifest("fixed.json", manifest("fixed", { app: resources }));
        const { exitCode, stderr } = await podwright.run(["run", "--detach", path]);
        assert.equal(exitCode, 2);
        return stderr;
      };
      assert.match(
        await refused({ requests: { cpu: "100m" }, limits: { cpu: "200m" } }),
        /resource limits cannot be removed/u,
      );
      assert.match(
        await refused({ limits }),
        /Pod QOS Class may not change as a result of resizing: Burstable to Guaranteed/u,
      );
      assert.equal((await podwright.pod("fixed")).uid, pod.uid);
    });
  });

  test("the pod's own limits apply to its containers, and are resized with them", async () => {
    await withPodwright(async (podwright) => {
      const of = (cpu: string, memory: string): string =>
        manifest("whole", { app: {} }, {}, { requests: { cpu: "100m" }, limits: { cpu, memory } });
      const pod = await apply(podwright, of("300m", "96Mi"));
      const { id } = await podwright.container("whole", "app");
      const limits = async (): Promise<unknown[]> => {
        const { pod: whole, container } = (await kernel(podwright, pod, id)) as Record<string, Record<string, number>>;
        return [whole?.["limit"], whole?.["MiB"], container?.["limit"], container?.["MiB"], whole?.["request"]];
      };
      assert.deepEqual(await limits(), [300, 96, 300, 96, 100]);
      await resize(podwright, pod.uid, of("500m", "128Mi"));
      assert.deepEqual(await limits(), [500, 128, 500, 128, 100]);
      assert.equal((await podwright.container("whole", "app")).id, id);
    });
  });
});
