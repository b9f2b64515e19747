import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import type { Pod, PodSpec } from "../../api/pod.ts";
import { testPod } from "../../../test/support/observed.ts";
import type { JournalInput } from "../../journal/entry.ts";
import { MemoryFiles } from "../../sim/files.ts";
import { type ResolverDependencies, resolverOf } from "./pod-resolver.ts";

async function scene(text: string, change: Partial<ResolverDependencies["node"]> = {}) {
  const files = new MemoryFiles(new ManualClock());
  await files.makeDirectory("/etc", 0o755);
  await files.write("/etc/resolv.conf", text, 0o644);
  const entries: JournalInput[] = [];
  const deps: ResolverDependencies = {
    files,
    journal: { record: (entry) => entries.push(entry) },
    node: { resolvConf: "/etc/resolv.conf", clusterDNS: [], clusterDomain: "", hostIPs: ["192.0.2.1"], ...change },
  };
  const podOf = (spec: Partial<PodSpec>, annotations: Readonly<Record<string, string>>): Pod => {
    const pod = testPod(spec);
    return { ...pod, metadata: { ...pod.metadata, annotations } };
  };
  return { entries, resolve: (spec = {}, annotations = {}) => resolverOf(deps, podOf(spec, annotations)) };
}

test("a pod's resolver comes from the node's file, which is reread for each pod", async () => {
  const { resolve } = await scene("nameserver 192.0.2.53\n");
  assert.deepEqual((await resolve()).servers, ["192.0.2.53"]);
});

test("a resolver file of more than 10 MiB is rejected", async () => {
  const { resolve } = await scene(`# ${"x".repeat(10 << 20)}\n`);
  await assert.rejects(resolve(), /\/etc\/resolv\.conf/);
});

test("a missing cluster DNS is reported in a cluster, servers beyond the limit always", async () => {
  const alone = await scene("");
  await alone.resolve();
  assert.deepEqual(alone.entries, []);
  const cluster = await scene("", { clusterDomain: "cluster.local" });
  await cluster.resolve();
  assert.deepEqual(
    cluster.entries.map(({ what }) => what),
    ["MissingClusterDNS"],
  );
  const [told] = cluster.entries;
  assert.match(JSON.stringify(told?.data?.["nodeMessage"]), /^"kubelet does not have ClusterDNS IP configured/);
  const ofServer = await scene("");
  await ofServer.resolve({}, { "kubernetes.io/config.source": "api" });
  assert.deepEqual(
    ofServer.entries.map(({ what }) => what),
    ["MissingClusterDNS"],
  );
  const many = await scene("");
  await many.resolve({ dnsPolicy: "None", dnsConfig: { nameservers: ["1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4"] } });
  assert.deepEqual(
    many.entries.map(({ what }) => what),
    ["DNSConfigForming"],
  );
});
