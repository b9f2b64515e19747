import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { test } from "node:test";
import { systemClock } from "../processes/clock.ts";
import { openNetwork } from "./network.ts";

const systemNetwork = openNetwork();

interface TestServer extends AsyncDisposable {
  readonly port: number;
  readonly requests: IncomingMessage[];
}

async function serve(handler: (request: IncomingMessage, response: ServerResponse) => void): Promise<TestServer> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    handler(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return {
    port: address.port,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

const signal = new AbortController().signal;
const request = { headers: {}, maxBytes: 1024, signal };

test("a GET has status, body and headers in both directions", async () => {
  await using server = await serve((_request, response) => response.writeHead(404).end("nothing"));
  const url = `http://127.0.0.1:${server.port}/pods?x=1`;
  const response = await systemNetwork.httpGet({ ...request, url, headers: { "X-One": ["a"], "X-Two": ["b", "c"] } });
  assert.equal(response.status, 404);
  assert.equal(Buffer.from(response.body).toString(), "nothing");
  const [seen] = server.requests;
  assert.equal(seen?.method, "GET");
  assert.equal(seen?.url, "/pods?x=1");
  assert.deepEqual(
    [seen?.headers["x-one"], seen?.headers["x-two"], seen?.headers["user-agent"]],
    ["a", "b, c", "podwright"],
  );
});

test("a body up to the limit is accepted and a longer one rejected", async () => {
  await using server = await serve((incoming, response) => response.end("x".repeat(Number(incoming.url?.slice(1)))));
  const url = `http://127.0.0.1:${server.port}`;
  assert.equal((await systemNetwork.httpGet({ ...request, url: `${url}/1024` })).body.length, 1024);
  await assert.rejects(systemNetwork.httpGet({ ...request, url: `${url}/1025` }), /longer than 1024 bytes/);
});

test("redirects are followed up to a limit", async () => {
  await using server = await serve((incoming, response) => {
    const left = Number(incoming.url?.slice(1));
    if (left === 0) response.end("arrived");
    else response.writeHead(302, { Location: `/${left - 1}` }).end();
  });
  const url = `http://127.0.0.1:${server.port}`;
  const response = await systemNetwork.httpGet({ ...request, url: `${url}/9` });
  assert.equal(Buffer.from(response.body).toString(), "arrived");
  assert.equal(server.requests.length, 10);
  await assert.rejects(systemNetwork.httpGet({ ...request, url: `${url}/10` }), /stopped after 10 redirects/);
});

test("a proxy gets the full URL and its own credentials, only for the requests meant for it", async () => {
  await using proxy = await serve((_request, response) => response.end("proxied"));
  await using server = await serve((_request, response) => response.end("direct"));
  const network = openNetwork(({ hostname }) =>
    hostname === "manifests.test" ? new URL(`http://me:s3cret@127.0.0.1:${proxy.port}`) : undefined,
  );
  const get = async (url: string): Promise<string> =>
    Buffer.from((await network.httpGet({ ...request, url, headers: { authorization: ["Bearer t"] } })).body).toString();
  assert.equal(await get("http://manifests.test/pods"), "proxied");
  assert.equal(await get(`http://127.0.0.1:${server.port}/pods`), "direct");
  const [seen] = proxy.requests;
  assert.equal(seen?.url, "http://manifests.test/pods");
  const basic = `Basic ${Buffer.from("me:s3cret").toString("base64")}`;
  assert.deepEqual([seen?.headers["proxy-authorization"], seen?.headers.authorization], [basic, "Bearer t"]);
  assert.equal(server.requests[0]?.headers["proxy-authorization"], undefined);
});

test("a redirect without a target is the response, and one to another scheme is rejected", async () => {
  await using server = await serve((incoming, response) => {
    response.writeHead(301, incoming.url === "/file" ? { Location: "file:///etc/passwd" } : {}).end();
  });
  const url = `http://127.0.0.1:${server.port}`;
  assert.equal((await systemNetwork.httpGet({ ...request, url })).status, 301);
  await assert.rejects(systemNetwork.httpGet({ ...request, url: `${url}/file` }), /scheme is file/);
});

test("credentials are not sent to another host of a redirect", async () => {
  await using other = await serve((_request, response) => response.end("other"));
  await using server = await serve((incoming, response) => {
    const host = incoming.url === "/away" ? "localhost" : "127.0.0.1";
    response.writeHead(307, { Location: `http://${host}:${other.port}/` }).end();
  });
  const headers = { authorization: ["Bearer secret"], "X-Plain": ["kept"] };
  for (const path of ["stay", "away"]) {
    await systemNetwork.httpGet({ ...request, url: `http://127.0.0.1:${server.port}/${path}`, headers });
  }
  const seen = other.requests.map((one) => [one.headers.authorization, one.headers["x-plain"]]);
  assert.deepEqual(seen, [
    ["Bearer secret", "kept"],
    [undefined, "kept"],
  ]);
});

test("aborting rejects with the reason, before and during the response", async () => {
  await using server = await serve((_request, response) => void response.writeHead(200).write("begin"));
  const controller = new AbortController();
  const reason = new Error("no longer wanted");
  const url = `http://127.0.0.1:${server.port}`;
  const pending = systemNetwork.httpGet({ ...request, url, signal: controller.signal });
  while (server.requests.length === 0) await systemClock.sleep("the request to arrive", 5);
  controller.abort(reason);
  await assert.rejects(pending, reason);
  await assert.rejects(systemNetwork.httpGet({ ...request, url, signal: controller.signal }), reason);
});

test("a failed connection and a truncated body reject with an error that names the URL without its secrets", async () => {
  const server = await serve((_request, response) => {
    response.writeHead(200, { "Content-Length": "100" });
    response.write("short", () => response.destroy());
  });
  const url = `http://user:password@127.0.0.1:${server.port}/path?token=secret`;
  const expected = { message: new RegExp(`^GET http://127\\.0\\.0\\.1:${server.port}/path: `) };
  await assert.rejects(systemNetwork.httpGet({ ...request, url }), expected);
  await server[Symbol.asyncDispose]();
  await assert.rejects(systemNetwork.httpGet({ ...request, url }), /ECONNREFUSED/);
  await assert.rejects(systemNetwork.httpGet({ ...request, url: "not a URL" }), /not valid/);
});

test("the machine's addresses exclude loopback and link-local ones", () => {
  const addresses = systemNetwork.addresses();
  const interfaces = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
  const known = new Set(interfaces.map(({ address }) => address));
  for (const address of addresses) {
    assert.ok(isIP(address) !== 0 && known.has(address));
    assert.doesNotMatch(address, /^(127\.|169\.254\.|::1$|fe80)/);
  }
});
