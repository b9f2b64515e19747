import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import { connect } from "node:net";
import { test } from "node:test";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { EventType, Pods } from "../../src/ports/gen/pods/v1alpha1/api_pb.js";
import { PodResourcesLister } from "../../src/ports/gen/podresources/v1/api_pb.js";
import { PodResourcesLister as PodResourcesListerAlpha } from "../../src/ports/gen/podresources/v1alpha1/api_pb.js";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import { unixTransport } from "../../src/linux/http/unix-client.ts";
import { parseExposition, valueOf } from "../support/exposition.ts";
import { type KubeletNode, withKubeletNode } from "../support/kubelet-node.ts";
import { sleep, until } from "../support/podwright.ts";

const manifest = (name: string): string => `apiVersion: v1
kind: Pod
metadata: { name: ${name}, namespace: tools }
spec:
  terminationGracePeriodSeconds: 0
  initContainers:
  - { name: first, image: "${DEMO_IMAGE}", command: ["true"] }
  - { name: side, image: "${DEMO_IMAGE}", command: [sleep, "1000"], restartPolicy: Always }
  containers:
  - { name: app, image: "${DEMO_IMAGE}", command: [sleep, "1000"] }
`;

function over(path: string): Transport {
  return createGrpcTransport({ baseUrl: "http://localhost", nodeOptions: { createConnection: () => connect(path) } });
}

const hasCode = (code: Code, message: RegExp) => {
  return (error: unknown): boolean =>
    error instanceof ConnectError && error.code === code && message.test(error.rawMessage);
};

async function running(node: KubeletNode, name: string): Promise<string> {
  const [pod] = await node.podwright.waitFor(`${name} to run`, (pods) =>
    pods.some((each) => each.name === name && each.ready),
  );
  return pod?.uid ?? "";
}

test("the pod resources API lists pods with their regular containers and sidecars, within upstream's limit of calls", async () => {
  await withKubeletNode(async (node) => {
    const root = node.podwright.layout.kubeletRoot;
    const path = `${root}/pod-resources/kubelet.sock`;
    await node.write("web.yaml", manifest("web"));
    await node.startContainerd();
    const kubelet = node.startKubelet();
    await node.answers();
    await running(node, "web-node1");
    assert.deepEqual(
      [(await stat(`${root}/pod-resources`)).mode & 0o777, (await stat(path)).mode & 0o777],
      [0o750, 0o600],
    );
    assert.equal(existsSync(`${root}/pods-api`), false, "the pods API is off unless its gate is on");

    const client = createClient(PodResourcesLister, over(path));
    const { podResources } = await client.list({});
    assert.deepEqual(
      podResources.map(({ namespace, name, containers }) => [namespace, name, containers.map((each) => each.name)]),
      [["tools", "web-node1", ["side", "app"]]],
    );
    const found = await client.get({ podName: "web-node1", podNamespace: "tools" });
    assert.equal(found.podResources?.containers.length, 2);
    await assert.rejects(
      client.get({ podName: "none", podNamespace: "tools" }),
      hasCode(Code.Unknown, /^pod none in namespace tools not found$/),
    );
    const { devices, cpuIds, memory } = await client.getAllocatableResources({});
    assert.deepEqual([devices, cpuIds, memory], [[], [], []]);
    const alpha = await createClient(PodResourcesListerAlpha, over(path)).list({});
    assert.deepEqual(
      alpha.podResources[0]?.containers.map(({ name }) => name),
      ["app"],
    );

    const crowd = await Promise.allSettled(Array.from({ length: 200 }, () => client.list({})));
    const refused = crowd.flatMap((each) => (each.status === "rejected" ? [each.reason as unknown] : []));
    assert.ok(refused.length > 0 && refused.length <= 190, `${refused.length} refused`);
    for (const reason of refused) assert.ok(hasCode(Code.ResourceExhausted, /^rejected by rate limit$/)(reason));
    await sleep(150);
    assert.equal((await client.list({})).podResources.length, 1);

    const metrics = parseExposition(
      (await unixTransport(node.podwright.layout.engineSocket).request("GET", "/metrics")).body,
    );
    const count = (name: string, version = "v1"): number | undefined =>
      valueOf(metrics, `kubelet_pod_resources_endpoint_${name}`, { server_api_version: version });
    assert.equal(count("requests_list"), 202 - refused.length);
    assert.deepEqual([count("requests_get"), count("errors_get"), count("requests_get_allocatable")], [2, 1, 1]);
    assert.deepEqual([count("requests_total"), count("requests_total", "v1alpha1")], [205 - refused.length, 1]);

    kubelet.child.kill("SIGTERM");
    await kubelet.ended;
    assert.equal(existsSync(path), false);
  });
});

test("the pods API reports pods as they are added, changed and removed", async () => {
  await withKubeletNode(async (node) => {
    await node.write("web.yaml", manifest("web"));
    await node.startContainerd();
    node.startKubelet("--feature-gates", "PodsAPI=true");
    await node.answers();
    const uid = await running(node, "web-node1");
    const client = createClient(Pods, over(`${node.podwright.layout.kubeletRoot}/pods-api/pods-api.sock`));
    const { pods } = await client.listPods({});
    assert.equal(pods.length, 1);
    const { pod } = await client.getPod({ podUID: uid });
    for (const part of ["web-node1", "tools", uid, DEMO_IMAGE, "Running", "PodReadyToStartContainers"]) {
      assert.ok(Buffer.from(pod).includes(part), `${part} is not in the pod`);
    }
    await assert.rejects(client.getPod({ podUID: "none" }), hasCode(Code.NotFound, /^pod with UID none not found$/));

    const end = new AbortController();
    const seen: string[] = [];
    const watching = (async () => {
      for await (const event of client.watchPods({}, { signal: end.signal })) {
        const name = ["web-node1", "late-node1"].find((each) => Buffer.from(event.pod).includes(each)) ?? "";
        seen.push(`${EventType[event.type]} ${name}`.trim());
      }
    })().catch(() => {});
    const sees = async (what: string): Promise<void> => {
      await until(
        () => `${what} among ${seen.join(", ")}`,
        async () => seen.includes(what),
        30_000,
      );
    };
    await sees("INITIAL_SYNC_COMPLETE");
    assert.deepEqual(seen.slice(0, 2), ["ADDED web-node1", "INITIAL_SYNC_COMPLETE"]);
    await node.write("late.yaml", manifest("late"));
    await sees("ADDED late-node1");
    await sees("MODIFIED late-node1");
    await node.remove("late.yaml");
    await sees("DELETED late-node1");
    end.abort();
    await watching;
  });
});
