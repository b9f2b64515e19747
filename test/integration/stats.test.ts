import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import * as http from "node:http";
import * as https from "node:https";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { CertificateAuthority } from "../../src/linux/certificates/certificates.ts";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import type { CpuStats, PodStats, Summary } from "../../src/stats/summary-types.ts";
import { countersByHand, countersShown } from "../support/by-hand.ts";
import { parseExposition, valueOf } from "../support/exposition.ts";
import { freePort } from "../support/free-port.ts";
import { type KubeletNode, withKubeletNode } from "../support/kubelet-node.ts";
import { decodeBatch } from "../support/metrics-server.ts";
import { sleep, until } from "../support/podwright.ts";
import { promlint } from "../support/promlint.ts";

const work =
  "head -c 3000000 /dev/zero > /scratch/data; while true; do head -c 1000000 /dev/urandom | md5sum; sleep 0.1; done";
const manifest = `apiVersion: v1
kind: Pod
metadata: { name: busy }
spec:
  terminationGracePeriodSeconds: 0
  volumes: [{ name: scratch, emptyDir: {} }, { name: bare, hostPath: { path: /proc } }]
  containers:
  - name: worker
    image: "${DEMO_IMAGE}"
    command: [sh, -c, "${work}"]
    volumeMounts: [{ name: scratch, mountPath: /scratch }]
    resources: { limits: { memory: 64Mi, cpu: 500m } }
  - name: idle
    image: "${DEMO_IMAGE}"
    command: [sh, -c, "httpd -p 8093 -h /etc; sleep 1000"]
    ports: [{ containerPort: 8093 }]
    livenessProbe: { tcpSocket: { port: 8093 }, periodSeconds: 1 }
`;

const today = new Date();
const clients = new CertificateAuthority("clients", today);
const jane = clients.issue({
  subject: { commonName: "jane", organizations: [] },
  usages: ["client"],
  notBefore: new Date(today.getTime() - 60_000),
  notAfter: new Date(today.getTime() + 3_600_000),
});

interface Answer {
  readonly status: number;
  readonly type: string;
  /** Content-Encoding; empty: none. */
  readonly encoding: string;
  readonly text: string;
}

interface AskOptions {
  readonly method?: string;
  readonly accept?: string;
  /** Accept-Encoding. */
  readonly encoding?: string;
}

type Ask = (path: string, options?: AskOptions) => Promise<Answer>;

async function answerOf(outgoing: http.ClientRequest): Promise<Answer> {
  outgoing.end();
  const [response] = (await once(outgoing, "response")) as [http.IncomingMessage];
  const pieces: Buffer[] = [];
  for await (const chunk of response) pieces.push(chunk as Buffer);
  const { "content-type": type = "", "content-encoding": encoding = "" } = response.headers;
  const body = Buffer.concat(pieces);
  const text = (encoding === "gzip" ? gunzipSync(body) : body).toString();
  return { status: response.statusCode ?? 0, type, encoding, text };
}

async function startNode(
  node: KubeletNode,
): Promise<{ readonly known: Ask; readonly stranger: Ask; readonly local: Ask; readonly readOnly: Ask }> {
  const { podwright } = node;
  await podwright.manifest("ca.crt", clients.certificate);
  await node.write("busy.yaml", manifest);
  await node.startContainerd();
  const readOnlyPort = await freePort();
  const flags = ["--client-ca-file", podwright.path("ca.crt"), "--read-only-port", `${readOnlyPort}`];
  const kubelet = node.startKubelet(...flags);
  await kubelet.prints(/serving the kubelet API/);
  await node.answers();
  await podwright.waitFor("busy-node1 to run", (pods) => pods.some((pod) => pod.name === "busy-node1" && pod.ready));
  const ca = await readFile(podwright.path("pki/kubelet.crt"));
  const secure = (more: https.RequestOptions): Ask => {
    return async (path, { method = "GET", accept, encoding } = {}) => {
      const headers = { ...(accept && { Accept: accept }), ...(encoding && { "Accept-Encoding": encoding }) };
      const where = { host: "127.0.0.1", port: node.apiPort, servername: "node1", ca, agent: false };
      return await answerOf(https.request({ ...where, ...more, path, method, headers }));
    };
  };
  return {
    known: secure({ cert: jane.certificate, key: jane.key }),
    stranger: secure({}),
    local: async (path, { method = "GET" } = {}) =>
      await answerOf(http.request({ socketPath: podwright.layout.engineSocket, path, method })),
    readOnly: async (path, { method = "GET", accept, encoding } = {}) => {
      const headers = { ...(accept && { Accept: accept }), ...(encoding && { "Accept-Encoding": encoding }) };
      return await answerOf(http.request({ host: "127.0.0.1", port: readOnlyPort, path, method, headers }));
    },
  };
}

function busyPod({ pods }: Summary): PodStats {
  const pod = pods.find(({ podRef }) => podRef.name === "busy-node1");
  assert.ok(pod);
  return pod;
}

function usage(cpu: CpuStats | undefined): number {
  return cpu?.usageCoreNanoSeconds ?? Number.NaN;
}

test("the summary's counters lie between manual readings, and its figures are those of the pod", async () => {
  await withKubeletNode(async (node) => {
    const { known, stranger, local } = await startNode(node);
    for (const path of ["/stats/summary", "/metrics", "/metrics/resource", "/metrics/cadvisor", "/metrics/probes"]) {
      assert.equal((await stranger(path)).status, 401, path);
    }
    assert.equal((await known("/stats/summary", { method: "PUT" })).status, 405);
    assert.equal((await known("/stats/other")).status, 404);
    const summaryNow = async (query = ""): Promise<Summary> => {
      // Requests within a second get the earlier values.
      await sleep(1_050);
      const { status, type, text } = await known(`/stats/summary${query}`);
      assert.deepEqual([status, type], [200, "application/json"]);
      return JSON.parse(text) as Summary;
    };
    const first = await summaryNow();
    const { uid } = busyPod(first).podRef;
    const [running] = await node.podwright.pods();
    const ids = Object.fromEntries((running?.containers ?? []).map(({ name, id }) => [name, id]));
    const before = countersByHand(uid, ids);
    const summary = await summaryNow();
    const after = countersByHand(uid, ids);
    const pod = busyPod(summary);
    const container = pod.containers.find(({ name }) => name === "worker");
    const counters = countersShown(summary, "busy-node1");
    // Other tests' bridges come and go meanwhile.
    const isForeign = (what: string): boolean =>
      /^node podw-\S+ /u.test(what) && !(before.has(what) && after.has(what));
    for (const [what, value] of counters) {
      if (isForeign(what)) continue;
      const [low, high] = [before.get(what) ?? Number.NaN, after.get(what) ?? Number.NaN];
      assert.ok(low <= value && value <= high, `${what}: ${low} ≤ ${value} ≤ ${high}`);
    }
    for (const whose of ["node", "pod", "worker", "idle"]) {
      for (const what of ["processor", "page faults", "major page faults"]) assert.ok(counters.has(`${whose} ${what}`));
    }
    for (const what of ["pod eth0 rxBytes", "pod eth0 rxErrors", "pod eth0 txBytes", "pod eth0 txErrors"]) {
      assert.ok(counters.has(what), what);
    }
    assert.ok([...counters.keys()].some((what) => /^node \S+ txBytes$/u.test(what)));
    assert.ok(usage(summary.node.cpu) > usage(first.node.cpu));

    // At most the half processor of its limit, at least something.
    const rate = container?.cpu?.usageNanoCores ?? 0;
    assert.ok(rate > 1_000_000 && rate < 700_000_000, `${rate} nanocores`);
    assert.equal(container?.memory?.availableBytes, 64 * 1024 * 1024 - (container?.memory?.workingSetBytes ?? 0));
    assert.deepEqual(pod.containers.map(({ name }) => name).toSorted(), ["idle", "worker"]);
    assert.ok((pod.process_stats?.process_count ?? 0) >= 2);
    const [scratch, ...others] = pod.volume ?? [];
    assert.equal(scratch?.name, "scratch");
    assert.ok((scratch?.usedBytes ?? 0) >= 3_000_000);
    assert.deepEqual(
      others.map(({ name }) => name).filter((name) => name === "bare"),
      [],
    );
    assert.ok((pod["ephemeral-storage"]?.usedBytes ?? 0) > (scratch?.usedBytes ?? 0));
    assert.ok((container?.logs?.usedBytes ?? 0) > 0);
    assert.ok(container?.rootfs?.usedBytes !== undefined);
    const { fs, runtime, rlimit, systemContainers } = summary.node;
    // A runtime that was just started has not measured its images yet.
    assert.ok(fs?.capacityBytes && runtime?.imageFs?.capacityBytes && rlimit?.curproc && rlimit.maxpid);
    assert.notEqual(runtime.imageFs.usedBytes, undefined);
    for (const { name, startTime } of systemContainers ?? []) {
      assert.ok(Date.parse(startTime ?? "") <= Date.now(), `${name} began at ${startTime}`);
    }
    const system = systemContainers?.map(({ name, cpu }) => [name, usage(cpu) > 0]).toSorted();
    assert.ok(JSON.stringify(system).includes('["kubelet",true],["pods",true]'), JSON.stringify(system));

    const small = await summaryNow("?only_cpu_and_memory=true");
    assert.equal(small.node.fs, undefined);
    assert.deepEqual(Object.keys(busyPod(small)).toSorted(), [
      "containers",
      "cpu",
      "memory",
      "podRef",
      "startTime",
      "swap",
    ]);
    assert.equal((await local("/stats/summary")).status, 200);
  });
});

/** Public data only: no actions and no configuration. */
async function assertReadOnly(readOnly: Ask): Promise<void> {
  const metrics = ["/metrics", "/metrics/resource", "/metrics/cadvisor", "/metrics/probes", "/metrics/slis"];
  for (const path of [...metrics, "/stats/summary", "/healthz", "/healthz/syncloop"]) {
    assert.equal((await readOnly(path)).status, 200, path);
  }
  assert.match((await readOnly("/pods")).text, /^\{"kind":"PodList".*"name":"busy-node1"/);
  const open = await readOnly("/metrics", { accept: "application/openmetrics-text", encoding: "gzip" });
  assert.match(open.type, /^text\/plain; version=0\.0\.4/, "OpenMetrics would rename counters");
  assert.equal(open.encoding, "gzip");
  const labels = { server_type: "readonly", method: "GET", path: "metrics" };
  assert.equal(valueOf(parseExposition((await readOnly("/metrics")).text), "kubelet_http_requests_total", labels), 3);
  const target = "default/busy-node1/worker";
  for (const [method, path] of [
    ...[`/containerLogs/${target}`, "/runningpods/", "/logs/", "/debug/pprof/"].map((each) => ["GET", each] as const),
    ...[`/run/${target}?cmd=id`, `/exec/${target}?command=id&output=1`].map((each) => ["POST", each] as const),
    ...[`/attach/${target}?output=1`, "/portForward/default/busy-node1"].map((each) => ["POST", each] as const),
  ]) {
    const { status, text } = await readOnly(path, { method });
    assert.deepEqual([status, text], [405, "Debug endpoints are disabled.\n"], path);
  }
  for (const path of ["/configz", "/flagz", "/statusz", "/ui/", "/", "/v1/pods", "/spec/"]) {
    assert.equal((await readOnly(path)).status, 404, path);
  }
  assert.equal((await readOnly(`/checkpoint/${target}`, { method: "POST" })).status, 404);
}

test("metrics-server's scrape succeeds, and every metric passes promtool", async () => {
  await withKubeletNode(async (node) => {
    const { known, local, readOnly } = await startNode(node);
    const scrape = async (): Promise<ReturnType<typeof decodeBatch>> => {
      const { status, type, text } = await known("/metrics/resource");
      assert.deepEqual([status, type], [200, "text/plain; version=0.0.4; charset=utf-8"]);
      return decodeBatch(text);
    };
    const first = await scrape();
    await sleep(1_200);
    const second = await scrape();
    assert.deepEqual([...second.pods.keys()], ["default/busy-node1"]);
    for (const name of ["worker", "idle"]) {
      const [before, now] = [first, second].map(({ pods }) => pods.get("default/busy-node1")?.get(name));
      assert.ok(before && now && now.timeMs > before.timeMs && now.startTimeMs === before.startTimeMs, name);
      assert.ok(name === "idle" || now.cpuSeconds > before.cpuSeconds, name);
    }
    assert.ok(first.node && second.node && second.node.cpuSeconds > first.node.cpuSeconds);

    await until("a probe to be counted", async () => (await known("/metrics/probes")).text.includes("successful"));
    for (const path of ["/metrics", "/metrics/resource", "/metrics/cadvisor", "/metrics/probes", "/metrics/slis"]) {
      const { status, text } = await known(path);
      assert.equal(status, 200, path);
      assert.deepEqual(promlint(parseExposition(text)), [], path);
    }
    const metrics = parseExposition((await known("/metrics")).text);
    assert.equal(valueOf(metrics, "kubelet_running_pods"), 1);
    assert.equal(valueOf(metrics, "kubelet_running_containers", { container_state: "running" }), 2);
    assert.equal(valueOf(metrics, "kubelet_started_containers_total", { container_type: "container" }), 2);
    assert.equal(valueOf(metrics, "kubelet_node_name", { node: "node1" }), 1);
    assert.equal(valueOf(metrics, "kubelet_run_podsandbox_duration_seconds_count"), 1);
    assert.equal(valueOf(metrics, "kubelet_pod_start_duration_seconds_count"), 1);
    const resource = { method: "GET", path: "metrics/resource", server_type: "readwrite" };
    assert.equal(valueOf(metrics, "kubelet_http_requests_total", resource), 3);
    assert.ok((valueOf(metrics, "kubelet_runtime_operations_total", { operation_type: "run_podsandbox" }) ?? 0) >= 1);

    assert.equal((await known("/metrics", { method: "POST" })).status, 405);
    assert.equal((await known("/metrics/slis", { method: "DELETE" })).status, 200);
    assert.equal((await local("/metrics/cadvisor")).status, 200);
    const packed = await known("/metrics/cadvisor", { encoding: "gzip" });
    assert.equal(packed.encoding, "gzip");
    assert.deepEqual(promlint(parseExposition(packed.text)), []);
    await assertReadOnly(readOnly);
  });
});
