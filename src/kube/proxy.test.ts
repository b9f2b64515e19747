import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseProxy, proxyHeaders, proxyName, proxyOf } from "./proxy.ts";

const proxy = "http://proxy.example:3128";

function through(server: string, environment: Readonly<Record<string, string>>): string | undefined {
  return proxyOf({ server }, environment)?.href;
}

describe("the proxy to the API server", () => {
  test("is the environment's for the scheme, in capitals first, and without a scheme it is an HTTP proxy", () => {
    const [server, plain] = ["https://api.example:6443", "http://api.example:8080"];
    assert.equal(through(server, {}), undefined);
    assert.equal(through(server, { HTTPS_PROXY: proxy, https_proxy: "http://other" }), `${proxy}/`);
    assert.equal(through(server, { HTTPS_PROXY: "", https_proxy: "proxy.example:3128" }), `${proxy}/`);
    assert.equal(through(server, { HTTP_PROXY: proxy, ALL_PROXY: proxy }), undefined);
    assert.equal(through(plain, { http_proxy: proxy }), `${proxy}/`);
    assert.equal(through(plain, { HTTPS_PROXY: proxy }), undefined);
  });

  test("is the kubeconfig's before the environment's, whatever NO_PROXY, also for this machine", () => {
    const environment = { HTTPS_PROXY: "http://other", NO_PROXY: "*" };
    assert.equal(proxyOf({ server: "https://127.0.0.1:6443", proxyUrl: proxy }, environment)?.href, `${proxy}/`);
  });

  test("is never the environment's for the machine itself", () => {
    for (const host of ["localhost", "127.0.0.1", "127.9.9.9", "[::1]", "[::ffff:127.0.0.1]"]) {
      assert.equal(through(`https://${host}:6443`, { HTTPS_PROXY: proxy }), undefined, host);
    }
    assert.equal(through("https://localhost.example", { HTTPS_PROXY: proxy }), `${proxy}/`);
  });

  const rules: readonly (readonly [noProxy: string, direct: readonly string[], proxied: readonly string[]])[] = [
    ["*", ["https://api.example", "https://10.0.0.1"], []],
    ["a,*", ["https://api.example"], []],
    ["example", ["https://example", "https://api.example", "https://API.Example"], ["https://myexample"]],
    [".example", ["https://api.example", "https://a.b.example"], ["https://example"]],
    ["*.example", ["https://api.example"], ["https://example"]],
    [" API.example , x", ["https://api.example", "https://b.api.example"], ["https://example"]],
    ["api.example:6443", ["https://api.example:6443"], ["https://api.example:6444", "https://api.example"]],
    ["api.example:443", ["https://api.example"], ["https://api.example:6443"]],
    ["10.0.0.0/8", ["https://10.1.2.3:6443"], ["https://11.0.0.1", "https://api.example"]],
    ["10.1.2.3/8", ["https://10.9.9.9"], ["https://11.0.0.1"]],
    ["fd00::/16", ["https://[fd00:1::1]:6443"], ["https://[fe00::1]", "https://10.0.0.1"]],
    ["10.0.0.1", ["https://10.0.0.1:6443", "https://[::ffff:10.0.0.1]"], ["https://10.0.0.10", "https://10.0.0.2"]],
    ["10.0.0.1:6443", ["https://10.0.0.1:6443"], ["https://10.0.0.1"]],
    ["fd00::1", ["https://[fd00::1]", "https://[fd00:0::1]:6443"], ["https://[fd00::2]"]],
    ["[fd00::1]:6443", ["https://[fd00::1]:6443"], ["https://[fd00::1]"]],
    ["bücher.example", ["https://xn--bcher-kva.example", "https://bücher.example"], ["https://example"]],
    [", ,:443,10.0.0.0/33,10.0.0.0/x,.,*.", [], ["https://10.0.0.1", "https://api.example"]],
  ];
  for (const [noProxy, direct, proxied] of rules) {
    test(`is not used if NO_PROXY is ${JSON.stringify(noProxy)}`, () => {
      for (const server of direct) {
        assert.equal(through(server, { HTTPS_PROXY: proxy, NO_PROXY: noProxy }), undefined, server);
        assert.equal(through(server, { HTTPS_PROXY: proxy, no_proxy: noProxy }), undefined, server);
      }
      for (const server of proxied) {
        assert.equal(through(server, { HTTPS_PROXY: proxy, NO_PROXY: noProxy }), `${proxy}/`, server);
      }
    });
  }

  test("is refused by the variable's name when it can't be one, and nothing of it is shown", () => {
    const server = "https://api.example:6443";
    for (const [value, problem] of [
      ["socks5://u:s3cret@proxy:1080", /^PodwrightError: https_proxy of the environment: SOCKS is not supported/],
      ["ftp://u:s3cret@proxy", /https_proxy of the environment: is not an http or https URL/],
      ["http://u:s3cret@proxy:x", /is not an http or https URL/],
      ["http://u:s3cret%@proxy", /user and password must be percent-encoded/],
    ] as const) {
      const refused = (error: Error): boolean => problem.test(String(error)) && !String(error).includes("s3cret");
      assert.throws(() => through(server, { https_proxy: value }), refused);
      assert.equal(through(server, { https_proxy: value, NO_PROXY: "api.example" }), undefined);
    }
  });

  test("has a name without its credentials, which go into a header of their own", () => {
    const url = new URL("https://me:p%40ss%3A@proxy:3128/x?y");
    assert.equal(proxyName(url), "https://proxy:3128");
    assert.deepEqual(proxyHeaders(url), {
      "proxy-authorization": `Basic ${Buffer.from("me:p@ss:").toString("base64")}`,
    });
    assert.deepEqual(proxyHeaders(new URL(proxy)), {});
    assert.ok(parseProxy(proxy) instanceof URL);
  });
});
