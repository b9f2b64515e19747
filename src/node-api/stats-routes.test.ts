import assert from "node:assert/strict";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { nodeRequest } from "../../test/support/node-api.ts";
import { systemCompression } from "../linux/files/compression.ts";
import type { Family } from "../metrics/family.ts";
import { plain } from "./answers.ts";
import { type NodeFigures, withFigures } from "./stats-routes.ts";

const family: Family = {
  ...{ name: "a_total", help: "Tells", type: "counter", stability: "ALPHA", labels: [] },
  samples: [{ labels: [], value: 1 }],
};

function setUp() {
  const asked: boolean[] = [];
  const figures: NodeFigures = {
    summary: async (only) => {
      asked.push(only);
      return { node: { nodeName: "node1", startTime: "" }, pods: [] };
    },
    families: { "/metrics": async () => [family] },
    resetSlis: () => {},
  };
  const handler = withFigures(figures, systemCompression, async () => plain(404, "elsewhere"));
  return { asked, handler };
}

test("metrics are compressed for clients that accept gzip, and plain for others", async () => {
  const { handler } = setUp();
  const ask = async (
    accept: string | undefined,
  ): Promise<{ readonly coding: string | undefined; readonly text: string }> => {
    const answer = await handler(nodeRequest("GET", "/metrics", { headers: { "accept-encoding": accept } }));
    assert.ok("status" in answer);
    assert.equal(answer.headers?.["Vary"], "Accept-Encoding");
    if (typeof answer.body === "string") return { coding: undefined, text: answer.body };
    const pieces: Uint8Array[] = [];
    for await (const piece of answer.body) pieces.push(typeof piece === "string" ? Buffer.from(piece) : piece);
    const text = gunzipSync(Buffer.concat(pieces)).toString();
    return { coding: answer.headers?.["Content-Encoding"], text };
  };
  const text = "# HELP a_total [ALPHA] Tells\n# TYPE a_total counter\na_total 1\n";
  for (const accept of ["gzip", "deflate, GZIP;q=0.5", "*", "br;q=1, *;q=0.1"]) {
    assert.deepEqual(await ask(accept), { coding: "gzip", text }, accept);
  }
  for (const accept of [undefined, "", "identity", "gzip;q=0", "gzip;q=0, *", "deflate", "*;q=0", "gzip;q=x"]) {
    assert.deepEqual(await ask(accept), { coding: undefined, text }, `${accept}`);
  }
});

test("only CPU and memory are returned when the query or form requests that, once", async () => {
  const { asked, handler } = setUp();
  const form = async (): Promise<string> => "only_cpu_and_memory=true";
  for (const [method, target, body] of [
    ["GET", "/stats/summary", undefined],
    ["GET", "/stats/summary?only_cpu_and_memory=true", undefined],
    ["GET", "/stats/summary?only_cpu_and_memory=1", undefined],
    ["POST", "/stats/summary", form],
    ["POST", "/stats/summary?only_cpu_and_memory=true", form],
    ["GET", "/stats/summary", form],
  ] as const) {
    const answer = await handler(nodeRequest(method, target, body === undefined ? {} : { body }));
    assert.equal("status" in answer && answer.status, 200);
  }
  assert.deepEqual(asked, [false, true, false, true, false, false]);
});
