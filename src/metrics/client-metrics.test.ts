import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import type { KubeRequest, KubeTransport } from "../ports/kube-api.ts";
import { ClientMetrics } from "./client-metrics.ts";
import { Registry } from "./registry.ts";

const server: KubeTransport = {
  send: async () => ({
    status: 200,
    headers: {},
    body: (async function* () {
      yield new Uint8Array(60);
      yield new Uint8Array(5);
    })(),
  }),
};

test("sizes of the API server's responses are recorded after they were read, never for watches", async () => {
  const registry = new Registry();
  const client = new ClientMetrics(registry, new ManualClock());
  const transport = client.measured(server, "api:6443");
  const sizes = (): unknown => {
    const family = registry.families().find(({ name }) => name === "rest_client_response_size_bytes");
    assert.ok(family?.type === "histogram");
    return family.samples.map(({ labels, sum }) => [...labels, sum]);
  };
  const ask = async (path: string): Promise<void> => {
    const request: KubeRequest = {
      lane: "objects",
      method: "GET",
      path,
      headers: {},
      signal: new AbortController().signal,
    };
    let bytes = 0;
    for await (const chunk of (await transport.send(request)).body) bytes += chunk.length;
    assert.equal(bytes, 65);
  };
  await ask("/api/v1/pods?watch=true&resourceVersion=1");
  assert.deepEqual(sizes(), []);
  await ask("/api/v1/nodes/a");
  await ask("/api/v1/pods?watch=false");
  assert.deepEqual(sizes(), [["api:6443", "GET", 130]]);
});
