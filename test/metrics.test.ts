import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { certificateFamilies } from "../src/certificates/metrics.ts";
import { countedPods } from "../src/engine/listed-pods.ts";
import { measuredCgroups } from "../src/metrics/cgroup-metrics.ts";
import { expose } from "../src/metrics/exposition.ts";
import type { Family } from "../src/metrics/family.ts";
import { imageRecordFamilies } from "../src/metrics/image-metrics.ts";
import { NodeMetrics } from "../src/metrics/node-metrics.ts";
import { podGauges } from "../src/metrics/pod-gauges.ts";
import { processFamilies } from "../src/metrics/process-metrics.ts";
import { SliMetrics } from "../src/metrics/sli-metrics.ts";
import { silentVolumeFamily } from "../src/metrics/storage-metrics.ts";
import { cadvisorFamilies } from "../src/stats/cadvisor-metrics.ts";
import { resourceFamilies } from "../src/stats/resource-metrics.ts";
import { volumeFamilies } from "../src/stats/volume-metrics.ts";
import { type ParsedFamily, parseExposition } from "./support/exposition.ts";
import { ManualClock } from "./support/manual-clock.ts";
import { promlint } from "./support/promlint.ts";
import { deaf, ends, podOf, Scene } from "./support/sim-scene.ts";
import { simulatedCgroups } from "./support/stats.ts";
import { vectorJson, vectorText } from "./support/vectors.ts";

interface RecordedFamily {
  readonly path: string;
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
  readonly bounds?: readonly number[];
}

const documentation = readFileSync(new URL("../docs/metrics.md", import.meta.url), "utf8");

/** Names and patterns of docs/metrics.md's table of what is left out. */
function leftOut(): RegExp[] {
  const section = documentation.split("## What is left out")[1]?.split("\n## ")[0] ?? "";
  const rows = section.split("\n").filter((line) => line.startsWith("| `"));
  return rows.flatMap((row) => {
    const [, names = "", why = ""] = row.split("|");
    assert.ok(why.trim().length > 10, `no reason: ${row}`);
    return [...names.matchAll(/`([^`]+)`/gu)].map(
      ([, name = ""]) => new RegExp(`^${name.replaceAll("*", "\\w*")}$`, "u"),
    );
  });
}

/** Every family by its path, those without series among them. */
function served(): Map<string, Map<string, Family>> {
  const clock = new ManualClock();
  const metrics = new NodeMetrics(clock);
  measuredCgroups(metrics.registry, clock, simulatedCgroups);
  const facts = {
    nodeName: "n",
    version: "0",
    platform: "linux/amd64",
    cgroupVersion: 2,
    runtimeUnsupportedFrom: undefined,
    credentialConfigHash: undefined,
    features: [{ name: "NodeSwap", stage: "", enabled: true }],
  } as const;
  const logs: Family = {
    name: "kubelet_container_log_filesystem_used_bytes",
    ...{ help: "", type: "gauge", stability: "ALPHA", labels: ["uid", "namespace", "pod", "container"], samples: [] },
  };
  const own = processFamilies([], undefined);
  const records = imageRecordFamilies({ intents: 0, pulled: 0 });
  const certificate = { ttlSeconds: 1, renewErrors: 0, ages: [] };
  const sample = { timeMs: 0, pids: [] };
  const machine = { sample, bootedMs: 0, swapTotalBytes: 0, swapFreeBytes: 0, network: undefined };
  const node = {
    timeMs: 0,
    system: [],
    pods: [],
    machine: { ...machine, tasks: 0, maxTasks: 0, ioPressure: undefined },
  };
  const facility = { bootId: "", machineId: "", systemUuid: "", kernelVersion: "", osVersion: "" };
  const counts = { cores: 1, physicalCores: 1, sockets: 1, memoryBytes: 1, swapBytes: 0 };
  const view = { timeMs: 0, cgroups: [], fileSystems: [], machine: { ...facility, ...counts }, version: "" };
  const paths: Readonly<Record<string, readonly Family[]>> = {
    "/metrics": [
      ...[...metrics.families(facts), ...records, logs, ...own],
      ...certificateFamilies(certificate, certificate),
      ...volumeFamilies([]),
      silentVolumeFamily([]),
    ],
    "/metrics/resource": resourceFamilies(node),
    "/metrics/cadvisor": cadvisorFamilies(view),
    "/metrics/probes": [...metrics.probeFamilies(), ...own],
    "/metrics/slis": new SliMetrics(() => []).families(),
  };
  return new Map(
    Object.entries(paths).map(([path, families]) => [path, new Map(families.map((each) => [each.name, each]))]),
  );
}

/** Families that the Go kubelet showed, as HELP and TYPE lines. */
function recorded(file: string): { readonly name: string; readonly type: string }[] {
  return [...vectorText(file).matchAll(/^# TYPE (\S+) (\S+)$/gmu)].map(([, name = "", type = ""]) => ({ name, type }));
}

const files: Readonly<Record<string, string>> = {
  "/metrics": "metrics-families.txt",
  "/metrics/resource": "metrics-resource-families.txt",
  "/metrics/cadvisor": "metrics-cadvisor-families.txt",
  "/metrics/probes": "metrics-probes-families.txt",
};

test("each family that the Go kubelet showed is served with its type, or listed with the reason for its absence", () => {
  const [known, listed] = [served(), leftOut()];
  for (const [path, file] of Object.entries(files)) {
    const families = recorded(file);
    assert.ok(families.length > 0, file);
    for (const { name, type } of families) {
      const own = known.get(path)?.get(name);
      const isListed = listed.some((pattern) => pattern.test(name));
      assert.ok(own !== undefined || isListed, `${path}: ${name} is neither served nor in docs/metrics.md`);
      assert.ok(own === undefined || !isListed, `${path}: ${name} is served and in docs/metrics.md's table`);
      if (own !== undefined) assert.equal(own.type, type, `${path}: ${name}`);
    }
  }
});

test("each family that the Go kubelet has is served with its type, labels and buckets, or listed", () => {
  const [known, listed] = [served(), leftOut()];
  const families = vectorJson<readonly RecordedFamily[]>("metrics.json");
  let compared = 0;
  for (const { path, name, type, labels, bounds } of families) {
    const own = known.get(path)?.get(name);
    const isListed = listed.some((pattern) => pattern.test(name));
    assert.ok((own !== undefined) !== isListed, `${path}: ${name}: ${own === undefined ? "neither" : "both"}`);
    if (own === undefined) continue;
    assert.equal(own.type, type, name);
    assert.deepEqual(own.labels.toSorted(), labels.toSorted(), name);
    if (own.type === "histogram" && bounds !== undefined) assert.deepEqual(own.bounds, bounds, name);
    compared++;
  }
  assert.ok(compared > 70, `${compared} compared`);
});

const lasting = { terminationGracePeriodSeconds: 30, containers: [deaf("c")] };
const ofServer = podOf(lasting);
const staticPod = {
  ...ofServer,
  metadata: { ...ofServer.metadata, annotations: { "kubernetes.io/config.source": "file" } },
};

/** A node with a pod, after a while. */
async function nodeWith(pod = ofServer): Promise<Scene> {
  const scene = new Scene({ cpu: "1" });
  scene.node.add(pod);
  await scene.pass(5000);
  return scene;
}

/** A pod that still stops, with the number of mirror pods. */
async function stopping(pod: typeof ofServer): Promise<Scene> {
  const scene = await nodeWith(pod);
  scene.node.remove("uid-1");
  await scene.pass(2000);
  return scene;
}

/** The situations of pod-gauges.txt, with the number of mirror pods in each. */
const situations: Readonly<Record<string, readonly [() => Promise<Scene>, number]>> = {
  "a node without pods": [async () => new Scene(), 0],
  "a static pod that runs": [async () => await nodeWith(staticPod), 1],
  "a static pod whose manifest is gone, and which stops": [async () => await stopping(staticPod), 1],
  "a pod of the API server that runs": [nodeWith, 0],
  "a pod of the API server that has ended": [
    async () => await nodeWith(podOf({ restartPolicy: "Never", containers: [ends("c", 100, 0)] })),
    0,
  ],
  "a pod of the API server that is deleted, and stops": [
    async () => {
      const scene = await nodeWith();
      const deletionTimestamp = new Date(scene.clock.nowMs).toISOString();
      scene.node.update({ ...ofServer, metadata: { ...ofServer.metadata, deletionTimestamp } });
      await scene.pass(2000);
      return scene;
    },
    0,
  ],
  "a pod of the API server that the server has no more, and which stops": [async () => await stopping(ofServer), 0],
  "a pod that the node rejected": [
    async () => await nodeWith(podOf({ containers: [deaf("c", { resources: { requests: { cpu: "2" } } })] })),
    0,
  ],
  "a static pod that the runtime had at the start, and no source": [
    async () => {
      const scene = await nodeWith(staticPod);
      scene.node.kill();
      scene.node.desired.delete("uid-1");
      scene.node.start();
      await scene.pass(2000);
      return scene;
    },
    0,
  ],
};

/** Each series as its name and labels, with its value. */
function seriesOf(families: readonly ParsedFamily[]): Record<string, number> {
  const series = families.flatMap((family) => family.series);
  const text = (labels: ReadonlyMap<string, string>): string => {
    const pairs = [...labels].map(([name, value]) => `${name}=${value}`);
    return pairs.toSorted().join(" ");
  };
  return Object.fromEntries(series.map(({ name, labels, value }) => [`${name} ${text(labels)}`.trim(), value]));
}

test("pods are counted under the labels of the Go kubelet, with its zeros", async () => {
  const sections = vectorText("pod-gauges.txt").split("## ").slice(1);
  const expected = sections.map((section) => {
    const [title = "", ...lines] = section.trim().split("\n");
    return [title, parseExposition(`${lines.join("\n")}\n`)] as const;
  });
  assert.deepEqual(
    expected.map(([title]) => title),
    Object.keys(situations),
  );
  for (const [title, families] of expected) {
    const [begin, mirrorPods] = situations[title] ?? assert.fail(title);
    const scene = await begin();
    const gauges = podGauges({ pods: countedPods(scene.node.pods(), () => []), mirrorPods });
    const names = new Set(families.map(({ name }) => name));
    const shown = [...gauges, ...scene.registry.families()].filter(({ name }) => names.has(name));
    assert.deepEqual(seriesOf(parseExposition(expose(shown))), seriesOf(families), title);
  }
});

test("each family passes promtool's rules, whether it has series yet or not", () => {
  let linted = 0;
  for (const [path, families] of served()) {
    const parsed = [...families.values()].map(({ name, help, type }) => {
      // That one is put together elsewhere, without its help.
      const text = name === "kubelet_container_log_filesystem_used_bytes" ? "Bytes" : help;
      return { name, help: text, type, series: [] };
    });
    // The Go kubelet has these gauges under the names of counters.
    const own = promlint(parsed).filter((problem) => !/^volume_manager_selinux_\w+_total: non-counter/u.test(problem));
    assert.deepEqual(own, [], path);
    linted += parsed.length;
    const named = [...families.values()].flatMap(({ labels }) => labels);
    assert.deepEqual(
      named.filter((label) => !/^[a-zA-Z_][a-zA-Z0-9_]*$/u.test(label) || label.startsWith("__")),
      [],
    );
  }
  assert.ok(linted > 150, `${linted} families`);
});

test("docs/metrics.md lists only families of kubelets", () => {
  const names = [
    ...vectorJson<readonly RecordedFamily[]>("metrics.json").map(({ name }) => name),
    ...Object.values(files).flatMap((file) => recorded(file).map(({ name }) => name)),
    // What cAdvisor shows where there is something of it.
    ...["machine_dimm_count", "machine_cpu_cache_capacity_bytes"],
    ...["machine_thread_siblings_count", "machine_node_distance"],
  ];
  const unknown = leftOut().filter((pattern) => !names.some((name) => pattern.test(name)));
  assert.deepEqual(unknown, []);
});
