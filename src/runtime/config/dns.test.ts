import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../../base/ids.ts";
import type { Pod } from "../../api/pod.ts";
import { type DnsSettings, parseResolvConf, podDns, resolvConfProblem } from "./dns.ts";

const settings: DnsSettings = {
  clusterDNS: ["10.96.0.10"],
  clusterDomain: "cluster.local",
  resolvConf: "nameserver 192.0.2.1\nsearch example.org svc.cluster.local\noptions rotate\n",
  hostIPs: ["192.0.2.2"],
};

function dns(spec: Partial<Pod["spec"]>, changed: Partial<DnsSettings> = {}) {
  const pod: Pod = { metadata: { name: "p", namespace: "ns", uid: podUid("u") }, spec: { containers: [], ...spec } };
  return podDns(pod, { ...settings, ...changed });
}

const cluster = {
  servers: ["10.96.0.10"],
  searches: ["ns.svc.cluster.local", "svc.cluster.local", "cluster.local", "example.org"],
  options: ["ndots:5"],
};
const host = { servers: ["192.0.2.1"], searches: ["example.org", "svc.cluster.local"], options: ["rotate"] };
const empty = { servers: [], searches: [], options: [] };

const cases: [string, Partial<Pod["spec"]>, Partial<DnsSettings>, typeof cluster][] = [
  ["a pod asks the cluster's server", {}, {}, cluster],
  ["a pod on the node's network asks the node's", { hostNetwork: true }, {}, host],
  [
    "a pod on the node's network asks the cluster's if told so",
    { hostNetwork: true, dnsPolicy: "ClusterFirstWithHostNet" },
    {},
    cluster,
  ],
  ["policy Default takes the node's resolver", { dnsPolicy: "Default" }, {}, host],
  ["policy None takes nothing", { dnsPolicy: "None" }, {}, empty],
  [
    "without a cluster domain only the node's searches stay",
    {},
    { clusterDomain: "" },
    { ...cluster, searches: host.searches },
  ],
  [
    "without a resolver file a pod asks itself, in the families of the node",
    { dnsPolicy: "Default" },
    { resolvConf: undefined, hostIPs: ["fd00::1", "192.0.2.2"] },
    { servers: ["::1", "127.0.0.1"], searches: ["."], options: [] },
  ],
  [
    "dnsConfig adds to the policy's resolver, its options win",
    {
      dnsConfig: {
        nameservers: ["10.96.0.10", "9.9.9.9"],
        searches: ["example.org", "example.com"],
        options: [{ name: "ndots", value: "2" }, { name: "debug" }],
      },
    },
    {},
    {
      servers: ["10.96.0.10", "9.9.9.9"],
      searches: [...cluster.searches, "example.com"],
      options: ["ndots:2", "debug"],
    },
  ],
];

for (const [name, spec, changed, config] of cases) {
  test(name, () => {
    assert.deepEqual(dns(spec, changed), { config, problems: [] });
  });
}

test("without a cluster DNS server a pod falls back to the node's, with a warning", () => {
  const { config, problems } = dns({}, { clusterDNS: [] });
  assert.deepEqual(config, host);
  assert.equal(problems[0]?.reason, "MissingClusterDNS");
  assert.match(problems[0].message, /^pod: "p_ns\(u\)"\. kubelet does not have ClusterDNS IP/);
});

test("a resolver file with too many search domains is a problem, with room left for the cluster's", () => {
  const problem = (domains: readonly string[], clusterDomain = ""): string | undefined =>
    resolvConfProblem("/r", `search ${domains.join(" ")}\n`, clusterDomain);
  const all = (count: number, length = 1): string[] => Array.from({ length: count }, () => "a".repeat(length));
  assert.equal(problem(all(32)), undefined);
  assert.equal(problem(all(29), "cluster.local"), undefined);
  assert.match(
    problem(all(33)) ?? "",
    /^Resolv\.conf file '\/r' contains search line consisting of more than 32 domains!$/,
  );
  assert.match(problem(all(30), "cluster.local") ?? "", /more than 29 domains!$/);
  assert.match(problem(all(1, 254)) ?? "", /^Resolv\.conf file "\/r" contains a search path .* allowed 253 chars!$/);
  assert.match(problem(all(10, 250)) ?? "", /search line which length is more than allowed 2048 chars!$/);
});

test("servers and search domains beyond the limits are omitted and reported", () => {
  const searches = ["x".repeat(254), ...Array.from({ length: 40 }, (_, index) => `s${index}.${"y".repeat(100)}`)];
  const { config, problems } = dns({
    dnsPolicy: "None",
    dnsConfig: { nameservers: ["1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4"], searches },
  });
  assert.deepEqual(config.servers, ["1.1.1.1", "2.2.2.2", "3.3.3.3"]);
  assert.equal(config.searches?.[0], searches[1]);
  assert.ok((config.searches?.join(" ").length ?? 0) <= 2048);
  assert.deepEqual(
    problems.map(({ reason }) => reason),
    ["DNSConfigForming", "DNSConfigForming"],
  );
  assert.match(problems[0]?.message ?? "", /the applied nameserver line is: 1\.1\.1\.1 2\.2\.2\.2 3\.3\.3\.3$/);
});

test("32 search domains are kept, each of at most 253 characters, in sum 2048", () => {
  const kept = (searches: string[]): readonly string[] =>
    dns({ dnsPolicy: "None", dnsConfig: { nameservers: ["1.1.1.1"], searches } }).config.searches ?? [];
  const many = Array.from({ length: 33 }, (_, index) => `s${index}`);
  assert.deepEqual(kept(many), many.slice(0, 32));
  assert.deepEqual(kept(["x".repeat(253), "y".repeat(254)]), ["x".repeat(253)]);
  // Eight of 253 characters with the spaces between them are 2031; another space and 16 are 2048.
  const long = Array.from({ length: 8 }, (_, index) => String(index).repeat(253));
  assert.deepEqual(kept([...long, "x".repeat(16)]), [...long, "x".repeat(16)]);
  assert.deepEqual(kept([...long, "x".repeat(17)]), long);
});

test("what the node's file repeats stays, and counts, unless dnsConfig is merged into it", () => {
  const resolvConf = "nameserver 1.1.1.1\nnameserver 1.1.1.1\nnameserver 2.2.2.2\nnameserver 3.3.3.3\nsearch a b a\n";
  const repeated = dns({ dnsPolicy: "Default" }, { resolvConf });
  assert.deepEqual(repeated.config, {
    servers: ["1.1.1.1", "1.1.1.1", "2.2.2.2"],
    searches: ["a", "b", "a"],
    options: [],
  });
  assert.deepEqual(
    repeated.problems.map(({ reason }) => reason),
    ["DNSConfigForming"],
  );
  const { config, problems } = dns({ dnsPolicy: "Default", dnsConfig: {} }, { resolvConf });
  assert.deepEqual(config, { servers: ["1.1.1.1", "2.2.2.2", "3.3.3.3"], searches: ["a", "b"], options: [] });
  assert.deepEqual(problems, []);
});

test("a resolver file is parsed like resolvers do", () => {
  const text =
    "# nameserver 1.1.1.1\n nameserver 2.2.2.2 \nnameserver\nsearch a\nsearch b. . c\noptions ndots:1 rotate\noptions ndots:3\n";
  assert.deepEqual(parseResolvConf(text), {
    servers: ["2.2.2.2"],
    searches: ["b", "c"],
    options: ["ndots:3", "rotate"],
  });
});
