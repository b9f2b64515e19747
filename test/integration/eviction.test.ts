import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { PodStatus } from "../../src/api/status.ts";
import { TestApiServer } from "../apiserver/server.ts";
import { boundPod } from "../support/bound-pod.ts";
import { ClusterNode, withClusterNode } from "../support/cluster-node.ts";
import { KubeletNode } from "../support/kubelet-node.ts";
import { podObject, politeSleep } from "../support/manifests.ts";
import { type Podwright, until, withPodwright } from "../support/podwright.ts";
import { SmallDisk } from "../support/small-disk.ts";

const image = "docker.io/library/busybox:latest";
const scratch = { volumeMounts: [{ name: "scratch", mountPath: "/scratch" }] };
const withScratch = { volumes: [{ name: "scratch", emptyDir: {} }] };
const script = (text: string): { readonly command: string[] } => ({ command: ["/bin/sh", "-c", text] });
/** Exits at once on SIGTERM, but not with 0: an evicted pod that does has succeeded. */
const quickSleep = politeSleep.replace("exit 0", "exit 1");

interface Told {
  readonly reason: string;
  readonly message: string;
  readonly involvedObject: { readonly name: string };
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
}

async function evictedPod(cluster: ClusterNode, name: string): Promise<PodStatus> {
  await until(`pod ${name} to be evicted`, async () => cluster.status(name).phase === "Failed", 60_000);
  const status = cluster.status(name);
  assert.equal(status.reason, "Evicted", JSON.stringify(status));
  return status;
}

function disruption({ conditions = [] }: PodStatus): string | undefined {
  return conditions.find(({ type }) => type === "DisruptionTarget")?.reason;
}

/** The node's own figure of what is left, as `evict --preview` has it. */
async function left(podwright: Podwright, signal: string): Promise<number> {
  const { available } = JSON.parse(await podwright.succeed("evict", "--preview", "--json", "--signal", signal)) as {
    available: number;
  };
  return available;
}

// Two at a time: most of the time they wait.
describe("evictions", { concurrency: 2 }, () => {
  test("podwright run enforces pods' own storage limits, and gives the reason", async () => {
    await withPodwright(async (podwright) => {
      const writer = (name: string, volume: object, limits: object): string => {
        const { spec, ...pod } = podObject(name, "") as { spec: { containers: [object] } };
        const own = {
          ...spec.containers[0],
          ...script(`head -c 5m /dev/zero > /scratch/a; ${quickSleep}`),
          ...scratch,
        };
        const container = { ...own, resources: { limits } };
        return JSON.stringify({
          ...pod,
          spec: { ...spec, containers: [container], volumes: [{ name: "scratch", emptyDir: volume }] },
        });
      };
      /** One of its containers exceeds its own limit, and the pod not that of both together. */
      const layerWriter = (name: string): string => {
        const { spec, ...pod } = podObject(name, "") as { spec: { containers: [object] } };
        const [own] = spec.containers;
        const limited = (storage: string): object => ({ resources: { limits: { "ephemeral-storage": storage } } });
        const containers = [
          { ...own, ...script(`head -c 5m /dev/zero > /a; ${quickSleep}`), ...limited("2Mi") },
          { ...own, name: "beside", ...script(quickSleep), ...limited("100Mi") },
        ];
        return JSON.stringify({ ...pod, spec: { ...spec, containers } });
      };
      const paths = await Promise.all(
        [
          writer("sized", { sizeLimit: "1Mi" }, {}),
          layerWriter("layered"),
          writer("limited", {}, { "ephemeral-storage": "2Mi" }),
          writer("modest", { sizeLimit: "100Mi" }, { "ephemeral-storage": "100Mi" }),
        ].map((text, index) => podwright.manifest(`${index}.yaml`, text)),
      );
      await podwright.run(["run", "--detach", "--wait", "none", ...paths]);
      const pods = await podwright.waitFor(
        "three evictions",
        (all) => all.filter(({ reason }) => reason === "Evicted").length === 3,
      );
      assert.deepEqual(
        pods.map(({ name, phase, message }) => [name, phase, message]),
        [
          ["layered", "Failed", 'Container app exceeded its local ephemeral storage limit "2Mi". '],
          ["limited", "Failed", "Pod ephemeral local storage usage exceeds the total limit of containers 2Mi. "],
          ["modest", "Running", ""],
          ["sized", "Failed", 'Usage of EmptyDir volume "scratch" exceeds the limit "1Mi". '],
        ],
      );
      const why = await podwright.succeed("why", "sized");
      assert.match(
        why.replaceAll(/\s+/gu, " "),
        /because evicted for exceeding its own limit: it uses 5(?:\.\d)?Mi of 1Mi/u,
      );
      const end = await podwright.run(["evict"]);
      assert.deepEqual([end.exitCode, /'evict' needs either --preview or --confirm/u.test(end.stderr)], [2, true]);
      assert.match(
        await podwright.succeed("evict", "--preview"),
        /^memory\.available is .*no threshold is set\n1 {2}default\/modest/u,
      );
    });
  });

  test("a node that runs out of disk evicts the pod that fills it, and reports it", async () => {
    await using server = await TestApiServer.start();
    const node = await KubeletNode.open();
    using _disk = new SmallDisk(node.podwright.layout.kubeletRoot, 96);
    try {
      await node.startContainerd(image);
      const cluster = new ClusterNode(server, node);
      const { admin } = server;
      const limits = ["--eviction-hard", "nodefs.available<30%", "--eviction-pressure-transition-period", "1s"];
      await cluster.start(...limits);
      await cluster.nodeReady();
      admin.create(boundPod("bystander", scratch, withScratch));
      await cluster.ready("bystander");
      const fill = script("sleep 2; head -c 70m /dev/zero > /scratch/a; sleep 36000");
      admin.create(boundPod("filler", { ...fill, ...scratch }, withScratch));
      const status = await evictedPod(cluster, "filler");
      assert.match(
        status.message ?? "",
        /^The node was low on resource: ephemeral-storage\. Threshold quantity: \d+, available: \d+\w*\. /u,
      );
      assert.equal(disruption(status), "TerminationByKubelet");
      const events = (): Told[] => admin.list("events") as unknown as Told[];
      await until("the events", async () => events().some(({ reason }) => reason === "Evicted"));
      const evicted = events().find(({ reason }) => reason === "Evicted");
      assert.deepEqual([evicted?.involvedObject.name, evicted?.message], ["filler", status.message]);
      assert.equal(evicted?.metadata.annotations?.["starved_resource"], "ephemeral-storage");
      const attempt = events().find(({ reason }) => reason === "EvictionThresholdMet");
      assert.equal(attempt?.message, "Attempting to reclaim ephemeral-storage");
      assert.equal(cluster.status("bystander").phase, "Running");
      const why = (await node.podwright.succeed("why", "filler")).replaceAll(/\s+/gu, " ");
      // Times stand at the ends of lines.
      assert.match(why, /because evicted for nodefs\.available, ranked 1 of 2: uses \S+ of /u);
      assert.match(why, /requests none, priority 0; next: default\/bystander/u);
      admin.delete("pods", "default/filler");
      await cluster.gone("filler");
    } catch (error) {
      console.error(await node.podwright.evidence());
      throw error;
    } finally {
      await node.podwright.cleanUp();
    }
  });

  test("with --confirm-evictions a pod that only a changed threshold would evict stays until that is confirmed", async () => {
    await using server = await TestApiServer.start();
    const node = await KubeletNode.open();
    const { podwright } = node;
    using _disk = new SmallDisk(podwright.layout.kubeletRoot, 96);
    try {
      await node.startContainerd(image);
      const cluster = new ClusterNode(server, node);
      const flags = (hard: string): string[] => ["--confirm-evictions", "--eviction-hard", hard];
      const before = await cluster.start(...flags("nodefs.available<1%"));
      await cluster.nodeReady();
      const fill = script(`head -c 40m /dev/zero > /scratch/a; ${quickSleep}`);
      server.admin.create(boundPod("filler", { ...fill, ...scratch }, withScratch));
      await cluster.ready("filler");
      const isWritten = async (): Promise<boolean> => (await left(podwright, "nodefs.available")) < 55_000 * 1024;
      await until("the file", isWritten);
      before.child.kill("SIGTERM");
      await before.ended;
      await cluster.start(...flags("nodefs.available<90%"));
      const doctor = async (): Promise<string> => (await podwright.run(["doctor"])).stdout.replaceAll(/\s+/gu, " ");
      await until("the eviction to wait", async () =>
        /podwright evict (?:--state-dir \S+ )?--confirm allows it/u.test(await doctor()),
      );
      assert.match(await podwright.succeed("evict", "--preview"), /default\/filler/u);
      assert.equal(cluster.status("filler").phase, "Running");
      await podwright.succeed("evict", "--confirm");
      assert.match(
        (await evictedPod(cluster, "filler")).message ?? "",
        /^The node was low on resource: ephemeral-storage\. /u,
      );
    } catch (error) {
      console.error(await podwright.evidence());
      throw error;
    } finally {
      await podwright.cleanUp();
    }
  });

  test("for memory and processes the pods with the most usage are evicted, and the others stay", async () => {
    await withClusterNode(async (cluster, kubelet) => {
      const { admin } = cluster.server;
      const { podwright } = cluster.node;
      await cluster.nodeReady();
      admin.create(boundPod("modest", { resources: { requests: { memory: "64Mi" } } }));
      await cluster.ready("modest");
      const [memory, processes] = [await left(podwright, "memory.available"), await left(podwright, "pid.available")];
      kubelet.child.kill("SIGKILL");
      await kubelet.ended;
      // So much more others on this machine may come to use meanwhile; they may also free twice as much.
      const [spareMebibytes, spareProcesses] = [600, 400];
      const limits = `memory.available<${Math.trunc(memory / 2 ** 20) - spareMebibytes}Mi,pid.available<${processes - spareProcesses}`;
      await cluster.start("--eviction-hard", limits, "--eviction-pressure-transition-period", "1s");
      await cluster.nodeReady();
      // dd keeps its buffer until the pipe is read.
      const hog = script("dd if=/dev/zero bs=2000M count=1 | sleep 36000");
      admin.create(boundPod("hog", { ...hog, resources: { requests: { memory: "64Mi" } } }));
      const byMemory = await evictedPod(cluster, "hog");
      assert.match(
        byMemory.message ?? "",
        /^The node was low on resource: memory\. .*Container c was using \S+, request is 64Mi/u,
      );
      assert.equal(disruption(byMemory), "TerminationByKubelet");

      const forks = script("for i in $(seq 800); do sleep 36000 & done; wait");
      admin.create(boundPod("forks", { ...forks, resources: { requests: { memory: "64Mi" } } }));
      const byProcesses = await evictedPod(cluster, "forks");
      assert.match(
        byProcesses.message ?? "",
        /^The node was low on resource: pids\. Threshold quantity: \d+k?, available: \d+k?\. $/u,
      );
      assert.equal(cluster.status("modest").phase, "Running");
    }, image);
  });
});
