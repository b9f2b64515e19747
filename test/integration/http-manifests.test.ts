import assert from "node:assert/strict";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import type { PodView } from "../../src/server/local-api.ts";
import { withKubeletNode } from "../support/kubelet-node.ts";
import { withPodwright } from "../support/podwright.ts";

const manifest = (name: string, image = DEMO_IMAGE): string => `apiVersion: v1
kind: Pod
metadata: { name: ${name} }
spec:
  terminationGracePeriodSeconds: 0
  containers: [{ name: app, image: "${image}", command: [sleep, "1000"] }]
`;

/** A server of manifests on loopback. */
class ManifestServer implements AsyncDisposable {
  answer = { status: 200, body: "" };
  readonly requests: IncomingMessage[] = [];
  readonly #server = createServer((request, response) => {
    this.requests.push(request);
    response.writeHead(this.answer.status).end(this.answer.body);
  });

  async url(): Promise<string> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.listen(0, "127.0.0.1", resolve);
    await promise;
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/pods.yaml`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

const runs = (name: string) => (pods: readonly PodView[]) => pods.some((pod) => pod.name === name && pod.ready);

test("run reads manifests from a URL; a failed fetch or parse is reported with the URL, and nothing runs", async () => {
  await withPodwright(async (podwright) => {
    await using server = new ManifestServer();
    const url = await server.url();
    server.answer = { status: 404, body: "none" };
    const missing = await podwright.run(["run", "--detach", url]);
    assert.equal(missing.exitCode, 2, missing.stderr);
    assert.match(missing.stderr, /pods\.yaml.*404/u);
    server.answer = { status: 200, body: "kind: Pod\nspec: [" };
    const broken = await podwright.run(["run", "--detach", url]);
    assert.equal(broken.exitCode, 2, broken.stderr);
    assert.match(broken.stderr, /pods\.yaml:2/u);
    server.answer = { status: 200, body: `${manifest("one")}---\n${manifest("two")}` };
    await podwright.succeed("run", "--detach", "--wait", "ready", url);
    assert.deepEqual((await podwright.pods()).map(({ name }) => name).toSorted(), ["one", "two"]);
  });
});

test("staticPodURL is polled with its headers; its pods stay while it fails and stop after an empty response", async () => {
  await withKubeletNode(async (node) => {
    await using server = new ManifestServer();
    const configuration = await readFile(node.podwright.path("kubelet.yaml"), "utf8");
    const url = await server.url();
    await node.podwright.manifest(
      "kubelet.yaml",
      `${configuration}staticPodURL: ${url}\nstaticPodURLHeader: { X-Node: [node1] }\nhttpCheckFrequency: 1s\n`,
    );
    server.answer = { status: 200, body: manifest("far") };
    await node.startContainerd();
    const kubelet = node.startKubelet();
    await node.answers();
    await node.podwright.waitFor("far-node1 to run", runs("far-node1"), 30_000);
    assert.equal(server.requests[0]?.headers["x-node"], "node1");
    const before = await node.podwright.container("far-node1", "app");

    server.answer = { status: 503, body: "" };
    const seen = server.requests.length;
    await node.podwright.waitFor("two failed reads", () => server.requests.length >= seen + 2);
    assert.equal((await node.podwright.container("far-node1", "app")).id, before.id);

    server.answer = { status: 200, body: "" };
    await node.podwright.waitFor("far-node1 to go", (pods) => pods.length === 0);
    kubelet.child.kill("SIGTERM");
    assert.equal((await kubelet.ended).exitCode, 0);
    await node.expectNothingLeft();
  });
});
