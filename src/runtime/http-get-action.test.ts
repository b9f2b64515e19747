import assert from "node:assert/strict";
import { test } from "node:test";
import { httpGetRequest, resolvePort } from "./http-get-action.ts";

const ports = [{ name: "web", containerPort: 8080 }, { containerPort: 9090 }];

test("a request goes to the pod's address and says what upstream's says", () => {
  assert.deepEqual(httpGetRequest({ path: "/x?a=b", port: 80, scheme: "HTTP" }, ports, "10.0.0.2", "kube-test/1.36"), {
    scheme: "http",
    host: "10.0.0.2",
    port: 80,
    path: "/x?a=b",
    headers: [
      ["Host", "10.0.0.2:80"],
      ["User-Agent", "kube-test/1.36"],
      ["Accept", "*/*"],
    ],
  });
});

test("the action's own host, scheme, port name and headers count; an empty Accept header takes the usual one away", () => {
  const httpHeaders = [
    { name: "host", value: "example.com" },
    { name: "user-agent", value: "mine" },
    { name: "Accept", value: "" },
    { name: "X-A", value: "1" },
    { name: "X-A", value: "2" },
  ];
  const request = httpGetRequest({ host: "h", port: "web", scheme: "HTTPS", httpHeaders }, ports, "10.0.0.2", "kube");
  assert.equal(request.scheme, "https");
  assert.equal(request.host, "h");
  assert.equal(request.port, 8080);
  assert.deepEqual(request.headers, [
    ["Host", "example.com"],
    ["user-agent", "mine"],
    ["X-A", "1"],
    ["X-A", "2"],
  ]);
});

test("an IPv6 address stands in brackets in the Host header", () => {
  const { headers } = httpGetRequest({ port: 80 }, [], "fd00::1", "kube");
  assert.deepEqual(headers[0], ["Host", "[fd00::1]:80"]);
});

test("a path becomes what a request line can carry", () => {
  const pathOf = (path: string): string => httpGetRequest({ path, port: 80 }, [], "h", "kube").path;
  assert.equal(pathOf(""), "/");
  assert.equal(pathOf("x"), "/x");
  assert.equal(pathOf("/a/../b#part"), "/a/../b");
  assert.equal(pathOf("/ä b\r\nX: y?q=%20"), "/%C3%A4%20b%0D%0AX:%20y?q=%20");
  assert.equal(pathOf("/\ud800"), "/%EF%BF%BD");
});

test("a port is a number, a name that the container has, or a number that was written as text", () => {
  assert.equal(resolvePort(1, ports), 1);
  assert.equal(resolvePort("web", ports), 8080);
  assert.equal(resolvePort("81", ports), 81);
  assert.throws(() => resolvePort("db", ports), /no port named "db"/);
  for (const port of [0, 65_536, "0"]) assert.throws(() => resolvePort(port, ports), /invalid port number/);
});
