import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/pods.ts";
import type { Container } from "../api/container.ts";
import type { NodeSelectorRequirement } from "../api/scheduling.ts";
import type { Pod } from "../api/pod.ts";
import type { Pressure } from "../eviction/pressure.ts";
import { isRejection } from "../journal/vocabulary.ts";
import { admissionChain } from "../kubelet/admission-chain.ts";
import { type Admission, type AdmissionChain, decideAdmission, resizeObjection } from "./admission.ts";
import type { NodePlace } from "./predicates.ts";
import { sysctlAllowlist } from "./sysctl-allowlist.ts";

type Port = NonNullable<Container["ports"]>[number];

function podOn(port: Partial<Port>, name = "web"): Pod {
  return podWith({ containers: [{ name: "c", ports: [{ containerPort: 80, ...port }] }] }, { name });
}

const rows: readonly [string, Partial<Port>, Partial<Port>, boolean][] = [
  ["the same port", { hostPort: 80 }, { hostPort: 80 }, true],
  ["another port", { hostPort: 80 }, { hostPort: 81 }, false],
  ["another protocol", { hostPort: 80 }, { hostPort: 80, protocol: "UDP" }, false],
  ["two addresses", { hostPort: 80, hostIP: "10.0.0.1" }, { hostPort: 80, hostIP: "10.0.0.2" }, false],
  ["one of all addresses", { hostPort: 80, hostIP: "10.0.0.1" }, { hostPort: 80 }, true],
  ["an empty address, which is all,", { hostPort: 80, hostIP: "10.0.0.1" }, { hostPort: 80, hostIP: "" }, true],
  ["the IPv6 wildcard beside all", { hostPort: 80, hostIP: "::" }, { hostPort: 80, hostIP: "0.0.0.0" }, true],
  ["the IPv6 wildcard twice", { hostPort: 80, hostIP: "::" }, { hostPort: 80, hostIP: "::" }, true],
  ["the IPv6 wildcard beside one address", { hostPort: 80, hostIP: "::" }, { hostPort: 80, hostIP: "fd00::1" }, false],
  ["a port that is not the host's", {}, { hostPort: 80 }, false],
];

const security = { sysctls: sysctlAllowlist("6.8.0", []), appArmor: false, supplementalGroupsPolicy: true };
const place: NodePlace = { name: "node1", labels: { zone: "a", cores: "8" }, taints: [] };

interface Case {
  readonly staying?: readonly Pod[];
  readonly ending?: readonly Pod[];
  readonly allocatable?: Readonly<Record<string, string>>;
  readonly place?: NodePlace | undefined;
  readonly unsupported?: string;
  readonly pressures?: readonly Pressure[];
}

function decide(pod: Pod, given: Case = {}): Admission {
  const holders = [
    ...(given.staying ?? []).map((holder) => ({ pod: holder, ending: false })),
    ...(given.ending ?? []).map((holder) => ({ pod: holder, ending: true })),
  ];
  const node = { allocatable: given.allocatable ?? {}, place: given.place };
  return decideAdmission(pod, chain(given), { holders, node });
}

function chain({ unsupported = "", pressures = [] }: Case): AdmissionChain {
  const cluster = { runtime: () => undefined, unsupported: () => unsupported };
  return admissionChain({
    ...{ admission: security, cluster, pressure: { pressures } },
    ...{ rooms: [], allocations: { wanted: () => {} } },
  });
}

/** Why a pod with a request of 1 CPU is not resized to this. */
function objection(pod: Pod, given: Case): string | undefined {
  const has = { ...pod, spec: { ...pod.spec, containers: asking("p", { cpu: "1" }).spec.containers } };
  const node = { allocatable: given.allocatable ?? {}, place: given.place };
  return resizeObjection(pod, has, given.staying ?? [], chain(given), node);
}

/** `reason: message` of a refused pod. */
function refusal(admission: Admission): string | undefined {
  if (admission.kind !== "reject") return undefined;
  assert.ok(isRejection(admission.rejection.reason));
  return `${admission.rejection.reason}: ${admission.rejection.message}`;
}

function asking(name: string, requests: Readonly<Record<string, string>>, spec: Partial<Pod["spec"]> = {}): Pod {
  return podWith({ containers: [{ name: "c", resources: { requests } }], ...spec }, { name, uid: name });
}
const critical = { priority: 2_000_000_000 };

for (const [name, wanted, taken, refused] of rows) {
  test(`a pod that requests ${name} is ${refused ? "rejected" : "admitted"}`, () => {
    const admission = decide(podOn(wanted), { staying: [podOn(taken, "holder")] });
    assert.equal(refusal(admission)?.split(":")[0], refused ? "NodePorts" : undefined);
  });
}

test("a rejection names the port and its owner", () => {
  assert.equal(
    refusal(decide(podOn({ hostPort: 80 }), { staying: [podOn({ hostPort: 80 }, "holder")] })),
    "NodePorts: Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports " +
      "(host port TCP 0.0.0.0:80 is taken by pod ns/holder)",
  );
});

test("ports of sidecars count, those of other init containers do not", () => {
  const init: Container = { name: "i", ports: [{ containerPort: 80, hostPort: 80 }] };
  const holder = (container: Container): Pod =>
    podWith({ containers: [{ name: "c" }], initContainers: [container] }, { name: "holder" });
  const beside = (container: Container): Admission => decide(podOn({ hostPort: 80 }), { staying: [holder(container)] });
  assert.equal(beside({ ...init, restartPolicy: "Always" }).kind, "reject");
  assert.equal(beside(init).kind, "admit");
});

test("a pod that requests more huge pages than are left, or of a missing size, is rejected", () => {
  const allocatable = { "hugepages-2Mi": "8Mi" };
  const pages = (amount: string, size = "2Mi"): Pod => asking("p", { [`hugepages-${size}`]: amount });
  assert.equal(decide(pages("8Mi"), { allocatable }).kind, "admit");
  assert.equal(decide(pages("4Mi", "2048Ki"), { allocatable, staying: [pages("4Mi")] }).kind, "admit");
  assert.equal(
    refusal(decide(pages("6Mi"), { allocatable, staying: [pages("4Mi")] })),
    "OutOfhugepages-2Mi: Pod was rejected: Node didn't have enough resource: hugepages-2Mi, requested: 6291456, used: 4194304, capacity: 8388608",
  );
  assert.match(refusal(decide(pages("1Gi", "1Gi"), { allocatable })) ?? "", /^OutOfhugepages-1Gi/);
});

test("a pod without enough resources is rejected with the figures", () => {
  const allocatable = { cpu: "2", memory: "1Gi", pods: "2", "ephemeral-storage": "10Gi", "example.org/gpu": "1" };
  const holder = asking("h", { cpu: "1500m", memory: "512Mi", "ephemeral-storage": "8Gi", "example.org/gpu": "1" });
  const cases: readonly (readonly [Readonly<Record<string, string>>, string | undefined])[] = [
    [{ cpu: "500m", memory: "512Mi" }, undefined],
    [
      { cpu: "501m" },
      "OutOfcpu: Pod was rejected: Node didn't have enough resource: cpu, requested: 501, used: 1500, capacity: 2000",
    ],
    [
      { memory: "513Mi" },
      "OutOfmemory: Pod was rejected: Node didn't have enough resource: memory, requested: 537919488, used: 536870912, capacity: 1073741824",
    ],
    [
      { "ephemeral-storage": "3Gi" },
      "OutOfephemeral-storage: Pod was rejected: Node didn't have enough resource: ephemeral-storage, requested: 3221225472, used: 8589934592, capacity: 10737418240",
    ],
    [
      { "example.org/gpu": "1" },
      "OutOfexample.org/gpu: Pod was rejected: Node didn't have enough resource: example.org/gpu, requested: 1, used: 1, capacity: 1",
    ],
    [{ "example.org/other": "5" }, undefined],
    [
      { cpu: "3", memory: "2Gi" },
      "OutOfcpu: Pod was rejected: Node didn't have enough resource: cpu, requested: 3000, used: 1500, capacity: 2000",
    ],
  ];
  for (const [requests, text] of cases) {
    assert.equal(refusal(decide(asking("p", requests), { allocatable, staying: [holder] })), text);
  }
  assert.equal(
    refusal(decide(asking("p", {}), { allocatable, staying: [holder, asking("i", {})] })),
    "OutOfpods: Pod was rejected: Node didn't have enough resource: pods, requested: 1, used: 2, capacity: 2",
  );
});

test("only extended resources of the API server's Node count", () => {
  const devices = { ...place, extended: { "example.org/gpu": "2", "example.org/gone": "0" } };
  const gpu = (count: string): Pod => asking("p", { "example.org/gpu": count });
  assert.equal(decide(gpu("2"), { place: devices }).kind, "admit");
  const texts = [gpu("3"), asking("p", { "example.org/gone": "1" })].map((pod) =>
    refusal(decide(pod, { place: devices })),
  );
  const text = "Node didn't have enough resource: ";
  assert.deepEqual(texts, [
    `OutOfexample.org/gpu: Pod was rejected: ${text}example.org/gpu, requested: 3, used: 0, capacity: 2`,
    `OutOfexample.org/gone: Pod was rejected: ${text}example.org/gone, requested: 1, used: 0, capacity: 0`,
  ]);
  assert.equal(decide(asking("p", { "example.org/licence": "1" }), { place: devices }).kind, "admit");
});

test("a node under pressure rejects pods; under memory pressure only best-effort ones; never critical ones", () => {
  const burstable = asking("b", { memory: "1Mi" });
  const bestEffort = asking("e", {});
  const tolerant = (key: string): Pod => asking("t", {}, { tolerations: [{ key, operator: "Exists" }] });
  const memoryTaint = "node.kubernetes.io/memory-pressure";
  const rowsOf: readonly (readonly [pressures: readonly Pressure[], pod: Pod, conditions: string | undefined])[] = [
    [["MemoryPressure"], bestEffort, "MemoryPressure"],
    [["MemoryPressure"], burstable, undefined],
    [["MemoryPressure"], tolerant(memoryTaint), undefined],
    [["MemoryPressure"], tolerant("node.kubernetes.io/disk-pressure"), "MemoryPressure"],
    [["DiskPressure"], burstable, "DiskPressure"],
    [["DiskPressure"], tolerant("node.kubernetes.io/disk-pressure"), "DiskPressure"],
    [["PIDPressure"], burstable, "PIDPressure"],
    [["MemoryPressure", "PIDPressure"], burstable, "MemoryPressure PIDPressure"],
    [["MemoryPressure", "DiskPressure"], asking("c", {}, critical), undefined],
    [[], bestEffort, undefined],
  ];
  for (const [pressures, pod, conditions] of rowsOf) {
    const text = conditions && `Evicted: Pod was rejected: The node had condition: [${conditions}]. `;
    assert.equal(refusal(decide(pod, { pressures })), text, `${pressures.join()} ${pod.metadata.name}`);
  }
});

test("a pod for another node is rejected: by labels, by name, by taints", () => {
  const affinity = (...expressions: readonly NodeSelectorRequirement[]): Partial<Pod["spec"]> => {
    const nodeSelectorTerms = [{ matchExpressions: [...expressions] }];
    return { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } } };
  };
  const tainted = { ...place, taints: [{ key: "k", value: "v", effect: "NoExecute" }] };
  const soft = { ...place, taints: [{ key: "k", effect: "NoSchedule" }] };
  const cases: readonly (readonly [Partial<Pod["spec"]>, NodePlace | undefined, string | undefined])[] = [
    [{ nodeSelector: { zone: "a" } }, place, undefined],
    [{ nodeSelector: { zone: "b" } }, place, "NodeAffinity"],
    [{ nodeSelector: { zone: "b" } }, undefined, undefined],
    [affinity({ key: "zone", operator: "In", values: ["a", "b"] }), place, undefined],
    [affinity({ key: "zone", operator: "NotIn", values: ["a"] }), place, "NodeAffinity"],
    [affinity({ key: "gpu", operator: "NotIn", values: ["x"] }), place, undefined],
    [affinity({ key: "zone", operator: "Exists" }, { key: "gpu", operator: "DoesNotExist" }), place, undefined],
    [affinity({ key: "gpu", operator: "Exists" }), place, "NodeAffinity"],
    [affinity({ key: "cores", operator: "Gt", values: ["7"] }), place, undefined],
    [affinity({ key: "cores", operator: "Lt", values: ["8"] }), place, "NodeAffinity"],
    [affinity({ key: "zone", operator: "Gt", values: ["1"] }), place, "NodeAffinity"],
    [affinity(), place, "NodeAffinity"],
    [{ affinity: { podAntiAffinity: {} } }, place, undefined],
    [{ nodeName: "node1" }, place, undefined],
    [{ nodeName: "node2" }, place, "NodeName"],
    [{}, soft, undefined],
    [{}, tainted, "TaintToleration"],
    [{ tolerations: [{ key: "k", value: "v", effect: "NoExecute" }] }, tainted, undefined],
    [{ tolerations: [{ key: "k", operator: "Exists" }] }, tainted, undefined],
    [{ tolerations: [{ operator: "Exists" }] }, tainted, undefined],
    [{ tolerations: [{ key: "k", value: "w" }] }, tainted, "TaintToleration"],
    [{ tolerations: [{ key: "k", operator: "Exists", effect: "NoSchedule" }] }, tainted, "TaintToleration"],
  ];
  for (const [spec, at, reason] of cases) {
    const told = refusal(decide(podWith({ containers: [{ name: "c" }], ...spec }), { place: at }));
    assert.equal(told?.split(":")[0], reason, JSON.stringify(spec));
    if (reason !== undefined) assert.match(told ?? "", /: Pod was rejected: Predicate \w+ failed: node\(s\) /);
  }
  const pod = podWith({ containers: [{ name: "c" }] }, { annotations: { "kubernetes.io/config.source": "file" } });
  assert.equal(decide(pod, { place: tainted }).kind, "admit", "static pods stand every taint");
});

test("reasons are in upstream's order: the system, then resources, pods and ports, profiles, unsupported features", () => {
  const profile = { securityContext: { appArmorProfile: { type: "RuntimeDefault" } } };
  const all = { ...profile, os: { name: "windows" }, nodeSelector: { zone: "b" } };
  const given: Case = { allocatable: { cpu: "1" }, place, unsupported: "spec.volumes.0.nfs: not supported" };
  const reasonOf = (pod: Pod): string | undefined => refusal(decide(pod, given))?.split(":")[0];
  assert.equal(reasonOf(asking("p", { cpu: "2" }, all)), "PodOSNotSupported");
  assert.equal(reasonOf(asking("p", { cpu: "2" }, { ...all, os: undefined })), "OutOfcpu");
  assert.equal(reasonOf(asking("p", { cpu: "1" }, { ...all, os: undefined })), "NodeAffinity");
  assert.equal(reasonOf(asking("p", { cpu: "1" }, profile)), "AppArmor");
  assert.equal(reasonOf(asking("p", { cpu: "1" })), "PodFeatureUnsupported");
});

test("a pod waits for resources that are being released, and one that never fits is rejected at once", () => {
  const allocatable = { cpu: "2" };
  const going = asking("going", { cpu: "1500m" });
  const admission = decide(asking("p", { cpu: "1" }), { allocatable, ending: [going] });
  assert.deepEqual(admission, {
    kind: "wait",
    for: [going],
    lacks: "Node didn't have enough resource: cpu, requested: 1000, used: 1500, capacity: 2000",
  });
  assert.equal(decide(asking("p", { cpu: "500m" }), { allocatable, ending: [going] }).kind, "admit");
  assert.match(
    refusal(decide(asking("p", { cpu: "3" }), { allocatable, ending: [going] })) ?? "",
    /^OutOfcpu.*used: 0,/,
  );
  const port = podOn({ hostPort: 80 });
  assert.equal(decide(port, { ending: [podOn({ hostPort: 80 }, "holder")] }).kind, "wait");
});

test("for a critical pod others are preempted, if it lacks nothing else", () => {
  const allocatable = { cpu: "2" };
  const staying = [asking("a", { cpu: "1" }), asking("b", { cpu: "500m" })];
  const admission = decide(asking("p", { cpu: "1" }, critical), { allocatable, staying });
  assert.equal(admission.kind, "preempt");
  assert.deepEqual(admission.kind === "preempt" && admission.victims.map(({ metadata }) => metadata.name), ["b"]);
  assert.equal(
    decide(asking("p", { cpu: "1" }, critical), { allocatable, staying, place: { ...place, name: "x" } }).kind,
    "preempt",
  );
  const elsewhere = { ...critical, nodeSelector: { zone: "b" } };
  assert.match(
    refusal(decide(asking("p", { cpu: "1" }, elsewhere), { allocatable, staying, place })) ?? "",
    /^NodeAffinity/,
  );
  const peers = [
    ...staying.map((pod) => ({ ...pod, spec: { ...pod.spec, ...critical } })),
    asking("small", { cpu: "200m" }),
  ];
  assert.equal(
    refusal(decide(asking("p", { cpu: "1" }, critical), { allocatable, staying: peers })),
    "UnexpectedAdmissionError: Pod was rejected: Unexpected error while attempting to recover from admission failure: " +
      "preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: " +
      "[(res: cpu, q: 500), ]",
    "what is left when those have gone that may",
  );
});

test("a pod is resized where it would be admitted; otherwise upstream's word is why not", () => {
  const tainted = { ...place, taints: [{ key: "k", effect: "NoExecute" }] };
  const underPressure = "The node had condition: [DiskPressure]. ";
  const taint = "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate";
  const lack = "Node didn't have enough resource: cpu, requested: 2000, used: 0, capacity: 1500";
  const lackBeside = "Node didn't have enough resource: cpu, requested: 2000, used: 1000, capacity: 2500";
  const cases: readonly (readonly [Partial<Pod["spec"]>, Case, string | undefined])[] = [
    [{}, { allocatable: { cpu: "2" }, place }, undefined],
    [{}, { pressures: ["DiskPressure"], allocatable: { cpu: "1500m" }, place: tainted }, underPressure],
    [critical, { pressures: ["DiskPressure"] }, undefined],
    [{}, { pressures: ["MemoryPressure"] }, undefined],
    [{}, { allocatable: { cpu: "1500m" }, place: tainted }, lack],
    [critical, { allocatable: { cpu: "1500m" }, place: tainted }, taint],
    [critical, { allocatable: { cpu: "2500m" }, staying: [asking("low", { cpu: "1" })] }, lackBeside],
    [{ tolerations: [{ operator: "Exists" }] }, { place: tainted }, undefined],
    [
      { nodeSelector: { zone: "b" } },
      { place },
      "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
    ],
    [{}, { unsupported: "spec.volumes.0.nfs: not supported" }, "spec.volumes.0.nfs: not supported"],
  ];
  for (const [spec, given, text] of cases) {
    assert.equal(objection(asking("p", { cpu: "2" }, spec), given), text, JSON.stringify([spec, given]));
  }
});

test("a resize is not delayed by resources that it asks no more of, however short the node is of them", () => {
  const allocatable = { cpu: "1", memory: "1Gi", pods: "1" };
  const staying = [asking("other", { cpu: "1", memory: "2Gi" })];
  assert.equal(objection(asking("p", { cpu: "500m" }), { allocatable, staying }), undefined);
  assert.match(objection(asking("p", { cpu: "500m", memory: "1" }), { allocatable, staying }) ?? "", /memory/);
});
