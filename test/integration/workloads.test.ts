import assert from "node:assert/strict";
import { test } from "node:test";
import type { ApiObject, Fields } from "../apiserver/objects.ts";
import { type ClusterNode, withClusterNode } from "../support/cluster-node.ts";
import { Kubectl, noKubectl } from "../support/kubectl.ts";
import { patience } from "../support/patience.ts";
import { sleep, until } from "../support/podwright.ts";
import { isReady, type PodTemplate, Workloads } from "../support/workloads.ts";

const image = "docker.io/library/busybox:latest";
const scale = 20;

function template(spec: (version: string) => Fields = () => ({}), command: readonly string[] = []): PodTemplate {
  return (name, version) => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default", labels: { version } },
    spec: {
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 1,
      containers: [
        {
          name: "c",
          image,
          imagePullPolicy: "Never",
          command: command.length > 0 ? [...command] : ["sh", "-c", "trap 'exit 0' TERM; sleep 3600 & wait"],
          env: [{ name: "VERSION", value: version }],
        },
      ],
      ...spec(version),
    },
  });
}

/** Every pod that stops being ready meanwhile, by name. */
function watchReadiness({ server }: ClusterNode): { readonly lost: string[] } & Disposable {
  const lost: string[] = [];
  const ready = new Set<string>();
  const look = (): void => {
    for (const pod of server.admin.list("pods")) {
      const name = pod.metadata.name ?? "";
      if (isReady(pod)) ready.add(name);
      else if (ready.delete(name)) lost.push(name);
    }
  };
  look();
  return { lost, [Symbol.dispose]: server.registry.store.subscribe(look) };
}

function containers({ server }: ClusterNode): unknown {
  interface Status {
    readonly status: { readonly containerStatuses: readonly { containerID: string; restartCount: number }[] };
  }
  const idsOf = (pod: ApiObject): unknown =>
    (pod as unknown as Status).status.containerStatuses.map(({ containerID, restartCount }) => [
      containerID,
      restartCount,
    ]);
  return server.admin.list("pods").map((pod) => [pod.metadata.name, idsOf(pod)]);
}

test("a Deployment's pods are created, rolled out, scaled to 20, stay ready over a restart of podwright, and are deleted", async () => {
  await withClusterNode(async (cluster, kubelet) => {
    await cluster.nodeReady();
    const workloads = new Workloads(cluster.server, template());
    const first = await workloads.replicas("web", 3);
    const rolled = await workloads.roll("web", first, "2");
    const all = [...rolled, ...(await workloads.replicas("web", scale - rolled.length, "2"))];

    const before = containers(cluster);
    {
      using readiness = watchReadiness(cluster);
      const { node } = cluster;
      kubelet.child.kill("SIGKILL");
      await kubelet.ended;
      await cluster.start();
      await node.answers();
      const ready = async (): Promise<boolean> =>
        (await node.podwright.pods()).filter((pod) => pod.ready).length === scale;
      await until("all pods to be taken up", ready, 30_000);
      await sleep(2000);
      assert.deepEqual(readiness.lost, []);
      assert.deepEqual(containers(cluster), before);
      const told = (await node.podwright.journal()).filter(({ what }) => what === "PodsTakenUp");
      assert.deepEqual(
        told.map(({ message }) => message),
        [`took over ${scale} pods with ${scale} running containers`],
      );
    }
    await workloads.remove(...all);
    assert.deepEqual(cluster.server.admin.list("pods"), []);
    for (const name of all) await cluster.gone(name);
  }, image);
});

test("the pods of a StatefulSet, a Job and a DaemonSet follow their controllers", async () => {
  await withClusterNode(async (cluster) => {
    await cluster.nodeReady();
    const { server } = cluster;
    const sets = new Workloads(server, template());
    const names = await sets.inOrder("db", 3);
    const uid = server.admin.get("pods", "default/db-2").metadata.uid;
    await sets.replaceInOrder(names, "2");
    assert.notEqual(server.admin.get("pods", "default/db-2").metadata.uid, uid);
    for (const name of names) {
      assert.equal(server.admin.get("pods", `default/${name}`).metadata.labels?.["version"], "2");
    }

    const fails = ["sh", "-c", "echo attempt $VERSION; test $VERSION = 2"];
    const jobs = new Workloads(
      server,
      template(() => ({ restartPolicy: "Never" }), fails),
    );
    assert.equal(await jobs.job("batch", 3), "batch-2");
    assert.deepEqual(
      [0, 1, 2].map((attempt) => cluster.status(`batch-${attempt}`).phase),
      ["Failed", "Failed", "Succeeded"],
    );
    // A finished pod stays for its logs until it is deleted.
    assert.match(await cluster.node.podwright.succeed("logs", "batch-1"), /attempt 1/);
    await jobs.remove("batch-0", "batch-1", "batch-2");

    const required = {
      nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In", values: ["node1"] }] }],
    };
    const daemons = new Workloads(
      server,
      template(() => ({
        hostNetwork: true,
        tolerations: [{ operator: "Exists" }],
        affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } },
      })),
    );
    await daemons.ready(daemons.create("agent-a"));
    await daemons.remove("agent-a");
    await daemons.ready(daemons.create("agent-b", "2"));
    await daemons.remove("agent-b", ...names);
    assert.deepEqual(server.admin.list("pods"), []);
  }, image);
});

test("a node drained by kubectl lets its pods end, and kubectl describe shows why", { skip: noKubectl }, async () => {
  await withClusterNode(async (cluster) => {
    const { server, node } = cluster;
    await cluster.nodeReady();
    const kubeconfig = await node.podwright.manifest("admin.kubeconfig", server.kubeconfig());
    const kubectl = new Kubectl(kubeconfig, node.podwright.layout.stateDirectory);
    const workloads = new Workloads(server, template());
    await workloads.ready(workloads.create("evicted"));
    const described = async (): Promise<string> => kubectl.succeed("describe", "pod", "evicted");
    await until("the events", async () => (await described()).includes("Container started"));
    assert.match(await described(), /Status:\s+Running[^]*Ready\s+True[^]*Normal\s+Started\s+\S+\s+kubelet/);
    assert.match(await kubectl.succeed("describe", "node", "node1"), /Ready\s+True[^]*KubeletReady[^]*evicted/);
    const drained = await kubectl.succeed("drain", "node1", "--force", `--timeout=${60 * patience}s`);
    assert.match(drained, /pod\/evicted evicted/);
    assert.equal(server.admin.find("pods", "default/evicted"), undefined);
    await cluster.gone("evicted");
  }, image);
});
