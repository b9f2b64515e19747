import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { ProbeTargetError } from "../../ports/network-probes.ts";
import { httpGetRequest, resolvePort } from "./http-get-action.ts";

/** Kubernetes' request for a path: recorded from Kubernetes 1.36.2, with Go 1.26's client. */
interface RecordedPath {
  readonly path: string;
  readonly target?: string;
  readonly authorization?: string;
  /** It was not sent. */
  readonly failed?: true;
}

const pathsFile = new URL("../../../test/fixtures/http-get/paths.jsonl", import.meta.url);
const recordedPaths = readFileSync(pathsFile, "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as RecordedPath);

const ports = [{ name: "web", containerPort: 8080 }, { containerPort: 9090 }];

test("a request goes to the pod's address with upstream's headers", () => {
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

test("the action's own host, scheme, port name and headers apply; an empty Accept header removes the default", () => {
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
    ["User-Agent", "mine"],
    ["X-A", "1"],
    ["X-A", "2"],
  ]);
});

test("an IPv6 address is in brackets in the Host header", () => {
  const { headers } = httpGetRequest({ port: 80 }, [], "fd00::1", "kube");
  assert.deepEqual(headers[0], ["Host", "[fd00::1]:80"]);
});

test("a path gives the same request as in Kubernetes", () => {
  for (const { path, target = "", authorization, failed } of recordedPaths) {
    const request = (): ReturnType<typeof httpGetRequest> => httpGetRequest({ path, port: 80 }, [], "h", "kube");
    if (failed === true) {
      assert.throws(request, ProbeTargetError, path);
      continue;
    }
    const { path: asked, headers } = request();
    const credentials = headers.find(([name]) => name === "Authorization")?.[1];
    assert.deepEqual([Buffer.from(asked, "latin1").toString(), credentials], [target, authorization], path);
  }
  assert.equal(recordedPaths.length, 897);
});

test("no path can end the request line", () => {
  const { path } = httpGetRequest({ path: "/ä b\r\nX: y?q=%20", port: 80 }, [], "h", "kube");
  assert.equal(path, "/%C3%A4%20b%0D%0AX:%20y%3Fq=%2520");
});

test("a port is a number, the name of a container's port, or a number as text", () => {
  assert.equal(resolvePort(1, ports), 1);
  assert.equal(resolvePort("web", ports), 8080);
  assert.equal(resolvePort("81", ports), 81);
  assert.throws(() => resolvePort("db", ports), /no port named "db"/);
  for (const port of [0, 65_536, "0"]) assert.throws(() => resolvePort(port, ports), /invalid port number/);
});
