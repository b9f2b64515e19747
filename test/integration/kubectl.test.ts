import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { test } from "node:test";
import type { Fields } from "../apiserver/objects.ts";
import { type ClusterNode, withClusterNode } from "../support/cluster-node.ts";
import { Kubectl, noKubectl } from "../support/kubectl.ts";
import { until } from "../support/podwright.ts";

const image = "docker.io/library/busybox:latest";
const script = "echo started; httpd -p 8091 -h /etc; trap 'exit 0' TERM; while true; do sleep 1; done";

const pod: Fields = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web", namespace: "default" },
  spec: {
    nodeName: "node1",
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 1,
    containers: [{ name: "c", image, imagePullPolicy: "Never", command: ["sh", "-c", script] }],
  },
};

async function kubectlOf({ server, node: { podwright } }: ClusterNode): Promise<Kubectl> {
  const path = podwright.path("kubectl-config");
  await writeFile(path, server.kubeconfig(), { mode: 0o600 });
  return new Kubectl(path, podwright.layout.stateDirectory);
}

function digest(data: Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}

test("kubectl logs, exec, cp, attach and port-forward through an API server", { skip: noKubectl }, async () => {
  await withClusterNode(async (cluster) => {
    await cluster.nodeReady();
    cluster.server.admin.create(pod);
    await cluster.ready("web");
    const kubectl = await kubectlOf(cluster);
    const { podwright } = cluster.node;

    assert.equal(await kubectl.succeed("logs", "web"), "started\n");
    assert.match(await kubectl.succeed("logs", "web", "--timestamps"), /^\d{4}-\d\d-\d\dT\S+ started\n$/);
    const missing = await kubectl.run(["logs", "web", "--previous"]);
    assert.match(missing.stderr, /previous terminated container "c" in pod "web" not found/);

    const failed = await kubectl.run(["exec", "web", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert.deepEqual([failed.code, failed.stdout.toString()], [7, "out\n"]);
    assert.match(failed.stderr, /^err\n/);
    const absent = await kubectl.run(["exec", "web", "--", "no-such-program"]);
    assert.notEqual(absent.code, 0);
    assert.match(absent.stderr, /no-such-program/);

    const data = randomBytes(30_000_000);
    const echoed = await kubectl.run(["exec", "-i", "web", "--", "cat"], data);
    assert.deepEqual([echoed.code, digest(echoed.stdout)], [0, digest(data)]);
    const summed = await kubectl.run(["exec", "-i", "web", "--", "sha256sum"], data);
    assert.equal(summed.stdout.toString().split(" ")[0], digest(data));

    await podwright.manifest("there", "to and fro");
    await kubectl.succeed("cp", podwright.path("there"), "web:/tmp/there");
    await kubectl.succeed("cp", "web:/tmp/there", podwright.path("back"));
    assert.equal(await readFile(podwright.path("back"), "utf8"), "to and fro");

    const forward = kubectl.start("port-forward", "pod/web", ":8091");
    try {
      const [line] = (await once(forward.stdout ?? forward, "data")) as [Buffer];
      const port = /127\.0\.0\.1:(\d+)/.exec(line.toString())?.[1];
      const ask = async (): Promise<string> => (await fetch(`http://127.0.0.1:${port}/hostname`)).text();
      assert.deepEqual(new Set(await Promise.all(Array.from({ length: 20 }, ask))), new Set(["web\n"]));
    } finally {
      forward.kill("SIGKILL");
    }
    cluster.server.admin.delete("pods", "default/web");
    await cluster.gone("web");
  }, image);
});

test("kubectl logs -f goes on over a restart of the container", { skip: noKubectl }, async () => {
  await withClusterNode(async (cluster) => {
    await cluster.nodeReady();
    cluster.server.admin.create(pod);
    await cluster.ready("web");
    const kubectl = await kubectlOf(cluster);
    const following = kubectl.start("logs", "-f", "web");
    let text = "";
    following.stdout?.on("data", (chunk: Buffer) => (text += chunk.toString()));
    try {
      await until("the first line", async () => text === "started\n");
      await kubectl.run(["exec", "web", "--", "kill", "-TERM", "1"]);
      await until("the line of the next instance", async () => text === "started\nstarted\n", 20_000);
    } finally {
      following.kill("SIGKILL");
    }
    assert.equal(await kubectl.succeed("logs", "web", "--previous"), "started\n");
    cluster.server.admin.delete("pods", "default/web");
    await cluster.gone("web");
  }, image);
});
