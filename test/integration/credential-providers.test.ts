import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { TestApiServer } from "../apiserver/server.ts";
import type { Fields } from "../apiserver/objects.ts";
import { boundPod } from "../support/bound-pod.ts";
import { ClusterNode } from "../support/cluster-node.ts";
import { KubeletNode } from "../support/kubelet-node.ts";
import { until } from "../support/podwright.ts";
import { Registry, registryUser } from "../support/registry.ts";

const skip = existsSync("/usr/bin/docker-registry") ? false : "docker-registry is not installed";
const demo = "docker.io/library/busybox:latest";
const annotation = "example.org/pull";

function pod(name: string, image: string, serviceAccountName: string): Fields {
  const container = { image, imagePullPolicy: "IfNotPresent", command: ["/busybox", "sleep", "3600"] };
  return boundPod(name, container, { serviceAccountName });
}

/** A plugin that stores its requests, and returns the credentials of that registry. */
function plugin(requests: string, registry: string): string {
  const auth = { [registry]: { username: registryUser.name, password: registryUser.password } };
  const answer = { kind: "CredentialProviderResponse", apiVersion: providerVersion, cacheKeyType: "Image", auth };
  // By one write: two plugins may write at the same time.
  return `#!/bin/sh\nprintf '%s\\n' "$(cat)" >> ${requests}\n[ "$1" = get ] && [ "$MODE" = test ] && echo '${JSON.stringify(answer)}'\n`;
}

const providerVersion = "credentialprovider.kubelet.k8s.io/v1";
const common = {
  apiVersion: providerVersion,
  defaultCacheDuration: "1h",
  args: ["get"],
  env: [{ name: "MODE", value: "test" }],
};

function providers(address: string): string {
  const tokenAttributes = {
    serviceAccountTokenAudience: "registry",
    cacheType: "ServiceAccount",
    requireServiceAccount: true,
    requiredServiceAccountAnnotationKeys: [annotation],
  };
  return JSON.stringify({
    apiVersion: "kubelet.config.k8s.io/v1",
    kind: "CredentialProviderConfig",
    providers: [
      { ...common, name: "broken", matchImages: [address] },
      { ...common, name: "of-node", matchImages: [`${address}/node`] },
      { ...common, name: "of-account", matchImages: [`${address}/team`], tokenAttributes },
    ],
  });
}

async function setUp(node: KubeletNode, address: string): Promise<{ flags: string[]; requests: string }> {
  const directory = node.podwright.path("plugins");
  const requests = node.podwright.path("requests");
  await mkdir(directory);
  const programs = { broken: "#!/bin/sh\necho out of order >&2\nexit 3\n", "of-node": plugin(requests, address) };
  for (const [name, text] of Object.entries({ ...programs, "of-account": plugin(requests, address) })) {
    await writeFile(`${directory}/${name}`, text, { mode: 0o755 });
  }
  const config = await node.podwright.manifest("providers.yaml", providers(address));
  const flags = ["--image-credential-provider-config", config, "--image-credential-provider-bin-dir", directory];
  return { flags, requests };
}

async function exercise(cluster: ClusterNode, address: string, images: { node: string; team: string }): Promise<void> {
  const { admin } = cluster.server;
  await cluster.nodeReady();
  const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "robot", namespace: "default" } };
  admin.create({ ...account, metadata: { ...account.metadata, annotations: { [annotation]: "yes" } } });
  admin.create(pod("of-node", images.node, "default"));
  admin.create(pod("of-account", images.team, "robot"));
  await Promise.all([cluster.ready("of-node"), cluster.ready("of-account")]);
  admin.create(pod("other", images.team, "default"));
  const refused = (object: unknown): boolean => JSON.stringify(object ?? {}).includes("ErrImagePull");
  await admin.until("pods", "default/other", refused, 30_000);
  await until("the broken plugin's event", async () => {
    const events = JSON.stringify(admin.list("events"));
    return events.includes("CredentialProviderFailed") && events.includes(`for ${address}/team/app`);
  });
}

test(
  "plugins provide credentials for the node or the pod's account; a failing one is reported and skipped",
  { skip },
  async () => {
    await using registry = await Registry.start("private");
    const [team, own] = [await registry.pushProgram("team/app", "1"), "node/app"];
    const images = { team, node: await registry.pushProgram(own, "1", "0") };
    await using server = await TestApiServer.start();
    // Audiences that no pod requests are forbidden to nodes too, unless a role allows them
    // (ServiceAccountNodeAudienceRestriction).
    server.access.allow(
      ({ user, verb, resource }) =>
        verb === "request-serviceaccounts-token-audience" &&
        resource === "registry" &&
        user.groups.includes("system:nodes"),
    );
    const node = await KubeletNode.open();
    try {
      await node.startContainerd(demo);
      const { flags, requests } = await setUp(node, registry.address);
      const cluster = new ClusterNode(server, node);
      const kubelet = await cluster.start(...flags);
      await exercise(cluster, registry.address, images);

      const asked = (await readFile(requests, "utf8"))
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as Fields);
      const of = (image: string): Fields | undefined =>
        asked.find((request) => request["image"] === `${registry.address}/${image}`);
      assert.equal(asked.length, 2, "each plugin for its images, once");
      assert.deepEqual(of("node/app"), {
        kind: "CredentialProviderRequest",
        apiVersion: providerVersion,
        image: `${registry.address}/node/app`,
      });
      const { serviceAccountToken, serviceAccountAnnotations } = of("team/app") ?? {};
      const token = typeof serviceAccountToken === "string" ? serviceAccountToken : "";
      assert.deepEqual(serviceAccountAnnotations, { [annotation]: "yes" });
      const claims = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as Fields;
      assert.deepEqual([claims["aud"], claims["sub"]], [["registry"], "system:serviceaccount:default:robot"]);

      kubelet.child.kill("SIGTERM");
      const { stdout, stderr } = await kubelet.ended;
      const journal = JSON.stringify(await node.podwright.journal());
      const told = [stdout, stderr, journal, JSON.stringify(server.admin.list("events"))].join("\n");
      for (const secret of [registryUser.password, token]) assert.ok(!told.includes(secret), "no secret is told");
      assert.match(told, /it exited with exit code 3: out of order/);
    } catch (error) {
      console.error(await node.podwright.evidence());
      throw error;
    } finally {
      await node.podwright.cleanUp();
    }
  },
);

test("a kubelet does not start with missing or misconfigured plugins", async () => {
  const node = await KubeletNode.open();
  try {
    const { flags } = await setUp(node, "r.io");
    const ended = async (...more: readonly string[]): Promise<string> =>
      (await node.startKubelet(...more).ended).stderr;
    assert.match(await ended(...flags.slice(0, 2)), /is missing/);
    assert.match(await ended(...flags.slice(0, 3), "/nowhere"), /plugin binary directory \/nowhere did not exist/);
    const bare = node.podwright.path("bare");
    await mkdir(bare);
    assert.match(await ended(...flags.slice(0, 3), bare), /plugin binary executable .*broken did not exist/);
  } finally {
    await node.podwright.cleanUp();
  }
});
