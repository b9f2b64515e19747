import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { createServer, request, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import type { TLSSocket } from "node:tls";
import { textAt } from "./objects.ts";
import { TestApiServer } from "./server.ts";
import { nodeNamed, podNamed, TestClient } from "./testing.ts";

const pods = "/api/v1/namespaces/default/pods";

describe("requests for a kubelet", () => {
  let server: TestApiServer;
  let client: TestClient;
  let kubelet: Server;
  const asked: string[] = [];
  before(async () => {
    server = await TestApiServer.start();
    client = new TestClient(server, server.credentials("admin", ["system:masters"]));
    const { certificate, key } = server.authority.issue({
      subject: { commonName: "k" },
      names: ["127.0.0.1"],
      usages: ["server"],
    });
    const options = {
      cert: certificate,
      key,
      ca: server.authority.certificate,
      requestCert: true,
      rejectUnauthorized: true,
    };
    kubelet = createServer(options, (incoming, response) => {
      const { CN } = (incoming.socket as TLSSocket).getPeerCertificate().subject;
      asked.push(`${String(CN)} ${incoming.url}`);
      asked.push(...Object.keys(incoming.headers).filter((each) => each.startsWith("impersonate-")));
      response.setHeader("content-type", "text/plain");
      response.write("one\n");
      setTimeout(() => response.end("two\n"), 20);
    });
    // Upgraded connections echo all data.
    kubelet.on("upgrade", (incoming: IncomingMessage, socket: TLSSocket) => {
      asked.push(`${incoming.headers.upgrade ?? ""} ${incoming.url}`);
      socket.on("error", () => {});
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n");
      socket.pipe(socket);
    });
    kubelet.listen(0, "127.0.0.1");
    await once(kubelet, "listening");
    server.admin.create({
      ...nodeNamed("node1"),
      status: {
        addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
        daemonEndpoints: { kubeletEndpoint: { Port: (kubelet.address() as AddressInfo).port } },
      },
    });
    server.admin.create(podNamed("web", { nodeName: "node1" }));
  });
  after(async () => {
    client[Symbol.dispose]();
    kubelet.close();
    kubelet.closeAllConnections();
    await server[Symbol.asyncDispose]();
  });

  it("pass logs with the kubelet's names of their options", async () => {
    asked.length = 0;
    const log = await client.get(`${pods}/web/log?follow=true&tailLines=3&timestamps=false`);
    assert.deepEqual([log.code, log.text], [200, "one\ntwo\n"]);
    const headers = { "Impersonate-User": "ann", "Impersonate-Group": "system:masters" };
    const metrics = await client.request("GET", "/api/v1/nodes/node1/proxy/metrics/resource?x=1", { headers });
    assert.equal(metrics.code, 200);
    const logs = await client.get("/api/v1/nodes/node1/proxy/logs/a%20b%3F/");
    assert.deepEqual([logs.code, logs.text], [200, "one\ntwo\n"]);
    assert.deepEqual(asked, [
      "kube-apiserver-kubelet-client /containerLogs/default/web/app?follow=true&tailLines=3",
      "kube-apiserver-kubelet-client /metrics/resource?x=1",
      "kube-apiserver-kubelet-client /logs/a%20b%3F/",
    ]);
  });
  it("carry upgraded connections byte by byte", async () => {
    asked.length = 0;
    const { certificate, key } = server.credentials("admin", ["system:masters"]);
    const opening = request(`${server.url}${pods}/web/exec?command=ls&command=-l&stdin=true&stdout=1`, {
      method: "POST",
      ca: server.authority.certificate,
      cert: certificate,
      key,
      headers: { connection: "Upgrade", upgrade: "SPDY/3.1" },
    });
    opening.end();
    const [response, socket] = (await once(opening, "upgrade")) as [IncomingMessage, TLSSocket];
    assert.equal(response.statusCode, 101);
    socket.write("hello");
    const [echo] = (await once(socket, "data")) as [Buffer];
    assert.equal(echo.toString(), "hello");
    socket.destroy();
    assert.deepEqual(asked, ["SPDY/3.1 /exec/default/web/app?input=1&output=1&command=ls&command=-l"]);
  });
  it("are rejected for an unknown pod or container, or without permission", async () => {
    assert.equal((await client.get(`${pods}/nobody/log`)).code, 404);
    assert.equal((await client.get(`${pods}/web/log?container=other`)).code, 400);
    server.admin.create(podNamed("elsewhere", { schedulerName: "none" }));
    assert.match(textAt((await client.get(`${pods}/elsewhere/log`)).body, "message"), /does not have a host assigned/);
    using nobody = new TestClient(server, server.credentials("nobody"));
    assert.equal((await nobody.get(`${pods}/web/log`)).code, 403);
  });
  it("fail with a message if the kubelet is unreachable", async () => {
    server.admin.create({
      ...nodeNamed("dead"),
      status: {
        addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
        daemonEndpoints: { kubeletEndpoint: { Port: 1 } },
      },
    });
    const answer = await client.get("/api/v1/nodes/dead/proxy/healthz");
    assert.equal(answer.code, 502);
    assert.match(textAt(answer.body, "message"), /error dialing backend: .*ECONNREFUSED/);
  });
});
