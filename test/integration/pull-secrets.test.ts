import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { test } from "node:test";
import type { Fields } from "../apiserver/objects.ts";
import { boundPod } from "../support/bound-pod.ts";
import { type ClusterNode, withClusterNode } from "../support/cluster-node.ts";
import { Podwright, until } from "../support/podwright.ts";
import { dockerConfig, Registry, registryUser } from "../support/registry.ts";

const skip = existsSync("/usr/bin/docker-registry") ? false : "docker-registry is not installed";
const demo = "docker.io/library/busybox:latest";
/** A program in an image of the private registry. */
const command = ["/busybox", "sleep", "3600"];
/** The password, by itself and as files have it. */
const secrets = new RegExp(
  [registryUser.password, ...["", `${registryUser.name}:`].map((before) => base64(before + registryUser.password))]
    .map((text) => text.replace(/=+$/u, ""))
    .join("|"),
  "u",
);

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

function pod(name: string, image: string, more: Fields = {}): Fields {
  return boundPod(name, { image, imagePullPolicy: "IfNotPresent", command }, more);
}

function says(...texts: readonly string[]): (object: unknown) => boolean {
  return (object) => texts.every((text) => JSON.stringify(object ?? {}).includes(text));
}

async function event(cluster: ClusterNode, reason: string, name: string): Promise<void> {
  const events = () => cluster.server.admin.list("events") as unknown as readonly Fields[];
  await until(`event ${reason} of pod ${name}`, async () =>
    events().some((each) => each["reason"] === reason && JSON.stringify(each["involvedObject"]).includes(`"${name}"`)),
  );
}

test(
  "a pod pulls with its Secrets or its account's, another pod needs its own, a static one uses the node's",
  { skip },
  async () => {
    await using registry = await Registry.start("private");
    const image = await registry.pushProgram("team/app", "1");
    const nodeImage = await registry.pushProgram("node/app", "1", "0");
    await withClusterNode(async (cluster, kubelet) => {
      const { server, node } = cluster;
      await cluster.nodeReady();

      server.admin.create(pod("without", image, { imagePullSecrets: [{ name: "missing" }] }));
      await server.admin.until("pods", "default/without", says("ErrImagePull", "pull access denied"), 30_000);
      await event(cluster, "FailedToRetrieveImagePullSecret", "without");

      server.admin.create({
        apiVersion: "v1",
        kind: "Secret",
        metadata: { name: "regcred", namespace: "default" },
        type: "kubernetes.io/dockerconfigjson",
        data: { ".dockerconfigjson": base64(dockerConfig(`https://${registry.address}/v2/`)) },
      });
      server.admin.create(pod("named", image, { imagePullSecrets: [{ name: "regcred" }] }));
      await cluster.ready("named");
      server.admin.patch("serviceaccounts", "default/default", { imagePullSecrets: [{ name: "regcred" }] });
      server.admin.create(pod("account", image));
      await cluster.ready("account");

      server.admin.create(pod("other", image, { imagePullSecrets: [{ name: "missing" }] }));
      await server.admin.until("pods", "default/other", says("ErrImagePull", "pull access denied"), 30_000);

      kubelet.child.kill("SIGKILL");
      const first = await kubelet.ended;
      await mkdir(node.podwright.layout.kubeletRoot, { recursive: true });
      const config = `${node.podwright.layout.kubeletRoot}/config.json`;
      await writeFile(config, dockerConfig(`${registry.address}/node`), { mode: 0o600 });
      const { spec } = pod("static", nodeImage) as { spec: Fields };
      const { nodeName: _node, automountServiceAccountToken: _mount, ...ofStatic } = spec;
      await node.write(
        "static.json",
        JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name: "static" }, spec: ofStatic }),
      );
      const again = await cluster.start();
      await cluster.ready("static-node1");
      server.admin.create(pod("late", image, { imagePullSecrets: [{ name: "missing" }] }));
      await server.admin.until("pods", "default/late", says("ErrImagePull", "pull access denied"), 30_000);

      assert.doesNotMatch(JSON.stringify(await node.podwright.journal()), secrets);
      assert.doesNotMatch(JSON.stringify(server.admin.list("events")), secrets);
      await node.remove("static.json");
      const names = ["without", "named", "account", "other", "late"];
      for (const name of names) server.admin.delete("pods", `default/${name}`);
      for (const name of [...names, "static-node1"]) await cluster.gone(name);
      again.child.kill("SIGTERM");
      const second = await again.ended;
      assert.doesNotMatch(first.stdout + first.stderr + second.stdout + second.stderr, secrets);
    }, demo);
  },
);

test("podwright run pulls with Secrets from the manifest", { skip }, async () => {
  await using registry = await Registry.start("private");
  const image = await registry.pushProgram("team/app", "1");
  const podwright = await Podwright.open();
  try {
    const stringData = { ".dockercfg": JSON.stringify(JSON.parse(dockerConfig(registry.address)).auths) };
    const secret = {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "regcred" },
      type: "kubernetes.io/dockercfg",
      stringData,
    };
    const { spec } = pod("private", image, { imagePullSecrets: [{ name: "regcred" }] }) as { spec: Fields };
    const { nodeName: _node, ...ofRun } = spec;
    const text = [secret, { apiVersion: "v1", kind: "Pod", metadata: { name: "private" }, spec: ofRun }]
      .map((object) => JSON.stringify(object))
      .join("\n---\n");
    const path = await podwright.manifest("private.yaml", text);
    await podwright.succeed("run", "--detach", path);
    await podwright.waitFor("the pod to run", (pods) => pods.some(({ phase }) => phase === "Running"), 30_000);
    assert.doesNotMatch(JSON.stringify(await podwright.journal()), secrets);
    await podwright.succeed("stop", "private");
  } finally {
    await podwright.cleanUp();
  }
});
