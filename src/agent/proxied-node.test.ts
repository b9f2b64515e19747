import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { MemoryFiles } from "../sim/files.ts";
import { type CredentialParts, nodeCredentials } from "./node-credentials.ts";
import { nodeTransport } from "./node-transport.ts";

/** A node whose kubeconfig is at `/conf`, and its log. */
async function nodeOf(cluster: string) {
  const clock = new ManualClock();
  const files = new MemoryFiles(clock);
  const text = `
current-context: c
contexts: [{ name: c, context: { cluster: k } }]
clusters: [{ name: k, cluster: { server: "https://api.test:6443"${cluster} } }]
`;
  await files.write("/conf", text, 0o600);
  const told: unknown[] = [];
  const log = { info: (message: string, fields: unknown) => void told.push([message, fields]) };
  const flags = { kubeconfig: "/conf" };
  const parts = { ports: { files, clock }, log, flags, nodeName: "n", renews: false } as unknown as CredentialParts;
  return { parts, told };
}

test("a proxy from the environment is logged without its credentials, and all requests use it", async (t) => {
  const asked: unknown[] = [];
  const proxy = createServer().on("connect", ({ url, headers }, client: Socket) => {
    asked.push([url, headers["proxy-authorization"]]);
    client.end("HTTP/1.1 503 Service Unavailable\r\n\r\n");
  });
  await new Promise<void>((done) => void proxy.listen(0, "127.0.0.1", done));
  const address = `127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  process.env["HTTPS_PROXY"] = `http://me:s3cret@${address}`;
  t.after(() => {
    delete process.env["HTTPS_PROXY"];
    proxy.close().closeAllConnections();
  });
  const { parts, told } = await nodeOf("");
  const credentials = await nodeCredentials(parts);
  assert.ok(credentials);
  const fields = {
    path: "/conf",
    server: "https://api.test:6443",
    proxy: `http://${address}`,
    from: "the environment",
  };
  assert.deepEqual(told, [["connecting to the API server through a proxy", fields]]);
  using transport = nodeTransport(parts.ports, credentials.access, credentials.certificates);
  const { signal } = new AbortController();
  await assert.rejects(transport.send({ lane: "objects", method: "GET", path: "/", headers: {}, signal }), {
    message: `API server api.test:6443: the proxy http://${address}: it answered 503 Service Unavailable`,
  });
  assert.deepEqual(asked, [["api.test:6443", `Basic ${Buffer.from("me:s3cret").toString("base64")}`]]);
});

test("an unusable proxy fails the start, and the kubeconfig's proxy takes precedence over the environment's", async (t) => {
  process.env["https_proxy"] = "socks5://me:s3cret@proxy:1080";
  t.after(() => delete process.env["https_proxy"]);
  const { parts } = await nodeOf("");
  await assert.rejects(
    nodeCredentials(parts),
    /^PodwrightError: https_proxy of the environment: SOCKS is not supported/,
  );
  const own = await nodeOf(', proxy-url: "https://me:s3cret@proxy.test"');
  await nodeCredentials(own.parts);
  const from = "proxy-url of the kubeconfig";
  const fields = { path: "/conf", server: "https://api.test:6443", proxy: "https://proxy.test", from };
  assert.deepEqual(own.told, [["connecting to the API server through a proxy", fields]]);
});
