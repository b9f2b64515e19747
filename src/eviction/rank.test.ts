import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { podWith } from "../../test/support/eviction.ts";
import type { Pod } from "../api/pod.ts";
import type { PodUsage } from "./pod-usage.ts";
import { type Candidate, rankPods } from "./rank.ts";
import { placeText, victimText } from "./rank-words.ts";
import { signals } from "./thresholds.ts";

const mi = 1 << 20;
const memory = (pod: Pod, mebibytes: number | undefined): Candidate => ({
  pod,
  usage: mebibytes === undefined ? undefined : { memoryBytes: mebibytes * mi, containers: [], volumes: [] },
});
const names = (ranked: readonly Candidate[]): string[] => ranked.map(({ pod }) => pod.metadata.name);

test("for memory, pods above their request go first, then by priority, then by the excess", () => {
  const candidates = [
    memory(podWith("within-low", { memory: "100Mi" }), 90),
    memory(podWith("within", { memory: "100Mi" }, { priority: 5 }), 99),
    memory(podWith("over-important", { memory: "10Mi" }, { priority: 9 }), 500),
    memory(podWith("over-a-little", { memory: "10Mi" }), 20),
    memory(podWith("over-much", { memory: "50Mi" }), 100),
    memory(podWith("none-asked"), 30),
  ];
  assert.deepEqual(names(rankPods(candidates, "memory.available", "one")), [
    ...["over-much", "none-asked", "over-a-little", "over-important", "within-low", "within"],
  ]);
});

test("of pods whose usage is unknown the lower priority goes first, then the smaller request", () => {
  const candidates = [
    memory(podWith("asks", { memory: "1Gi" }), undefined),
    memory(podWith("important", {}, { priority: 5 }), undefined),
    memory(podWith("asks-less", { memory: "1Mi" }), undefined),
    memory(podWith("known", {}, { priority: 9 }), 1),
  ];
  const ranked = rankPods(candidates, "memory.available", "one");
  assert.deepEqual(names(ranked), ["known", "asks-less", "asks", "important"]);
});

test("usage that was not measured for the ranking is said to be of the past", () => {
  const candidate = { ...memory(podWith("web", { memory: "10Mi" }), 30), measuredAgoMs: 41_000 };
  const [ranked] = rankPods([candidate], "memory.available", "one");
  const text = "used 30Mi of memory 41 s ago, 20Mi more than it requests, priority 0";
  assert.equal(ranked && placeText(ranked, "memory.available"), text);
});

test("critical pods come last, and before them those whose usage is unknown", () => {
  const candidates = [
    memory(podWith("critical", {}, { priority: 2_000_000_000 }), 900),
    memory(podWith("unknown", {}, { priority: -5 }), undefined),
    memory(podWith("small"), 1),
  ];
  assert.deepEqual(names(rankPods(candidates, "memory.available", "one")), ["small", "unknown", "critical"]);
});

const disk = (bytes: Partial<Record<"rootfs" | "logs" | "local" | "remote", number>>): PodUsage => ({
  containers: [
    {
      name: "c",
      rootfs: { bytes: bytes.rootfs ?? 0, inodes: (bytes.rootfs ?? 0) * 10 },
      logs: { bytes: bytes.logs ?? 0, inodes: 1 },
    },
  ],
  volumes: [
    { name: "local", isLocal: true, bytes: bytes.local ?? 0, inodes: 3 },
    { name: "remote", isLocal: false, bytes: bytes.remote ?? 0, inodes: 1000 },
  ],
});
const writers: readonly Candidate[] = [
  { pod: podWith("layer"), usage: disk({ rootfs: 50 }) },
  { pod: podWith("logs"), usage: disk({ logs: 40 }) },
  { pod: podWith("volume"), usage: disk({ local: 60 }) },
  { pod: podWith("elsewhere"), usage: disk({ remote: 900 }) },
];

test("for disks, usage on the full file system counts", () => {
  const first = (signal: Parameters<typeof rankPods>[1], fileSystems: Parameters<typeof rankPods>[2]): string[] =>
    names(rankPods(writers, signal, fileSystems)).slice(0, 3);
  assert.deepEqual(first("nodefs.available", "one"), ["volume", "layer", "logs"]);
  assert.deepEqual(first("imagefs.available", "one"), ["volume", "layer", "logs"]);
  assert.deepEqual(first("nodefs.available", "imagefs").slice(0, 2), ["volume", "logs"]);
  assert.deepEqual(first("imagefs.available", "imagefs").slice(0, 1), ["layer"]);
  assert.deepEqual(first("containerfs.available", "imagefs").slice(0, 1), ["layer"]);
  assert.deepEqual(first("containerfs.available", "split"), ["volume", "layer", "logs"]);
  assert.deepEqual(first("nodefs.inodesFree", "one").slice(0, 1), ["layer"]);
});

test("inode usage is compared without subtracting requested bytes", () => {
  const many: Candidate = { pod: podWith("many", { "ephemeral-storage": "1Gi" }), usage: disk({ rootfs: 9 }) };
  const few: Candidate = { pod: podWith("few"), usage: disk({ rootfs: 1 }) };
  assert.deepEqual(names(rankPods([few, many], "nodefs.inodesFree", "one")), ["many", "few"]);
});

test("one process is a process", () => {
  const uses = (processes: number): string[] => {
    const candidate = { pod: podWith("a"), usage: { processes, containers: [], volumes: [] } };
    return rankPods([candidate], "pid.available", "one").map((ranked) => placeText(ranked, "pid.available"));
  };
  assert.deepEqual(uses(1), ["uses 1 process, priority 0"]);
  assert.deepEqual(uses(2), ["uses 2 processes, priority 0"]);
});

test("for pids, priority comes before the number of processes", () => {
  const pids = (name: string, processes: number, priority: number): Candidate => {
    return { pod: podWith(name, {}, { priority }), usage: { processes, containers: [], volumes: [] } };
  };
  const candidates = [pids("low", 1, 0), pids("high", 500, 10), pids("low-many", 9, 0)];
  assert.deepEqual(names(rankPods(candidates, "pid.available", "one")), ["low-many", "low", "high"]);
});

test("for pids, a pod whose processes are unknown comes after the others of its priority only", () => {
  const pids = (name: string, processes: number | undefined, priority: number): Candidate => {
    return { pod: podWith(name, {}, { priority }), usage: { processes, containers: [], volumes: [] } };
  };
  const candidates = [pids("important", 500, 10), pids("unknown", undefined, 0), pids("few", 1, 0)];
  assert.deepEqual(names(rankPods(candidates, "pid.available", "one")), ["few", "unknown", "important"]);
});

test("the ranking does not depend on the input order, and is consistent", () => {
  const candidate = fc
    .record({
      name: fc.stringMatching(/^[a-z]{1,8}$/u),
      priority: fc.integer({ min: -2, max: 2 }),
      request: fc.integer({ min: 0, max: 3 }),
      used: fc.option(fc.integer({ min: 0, max: 5 }), { nil: undefined }),
    })
    .map(({ name, priority, request, used }) =>
      memory(podWith(name, request === 0 ? {} : { memory: `${request}Mi` }, { priority }), used),
    );
  const pods = fc.uniqueArray(candidate, { selector: ({ pod }) => pod.metadata.name, maxLength: 8 });
  fc.assert(
    fc.property(pods, fc.constantFrom(...signals), (candidates, signal) => {
      const ranked = rankPods(candidates, signal, "one");
      assert.deepEqual(names(rankPods(candidates.toReversed(), signal, "one")), names(ranked));
      for (const [index, { exceeds, priority, amount }] of ranked.entries()) {
        const next = ranked[index + 1];
        if (next === undefined) continue;
        if (signal === "pid.available") assert.ok(priority <= next.priority);
        if (amount === undefined || next.amount === undefined) continue;
        assert.ok(exceeds || !next.exceeds);
        if (exceeds === next.exceeds) assert.ok(priority <= next.priority);
      }
    }),
  );
});

test("a pod's rank is explained with everything that decides it", () => {
  const ranked = rankPods(
    [
      memory(podWith("a", { memory: "10Mi" }), 30),
      memory(podWith("b"), 5),
      memory(podWith("c", { memory: "64Mi" }, { priority: 7 }), 60),
      memory(podWith("d"), undefined),
    ],
    "memory.available",
    "one",
  );
  assert.deepEqual(
    ranked.map((each) => placeText(each, "memory.available")),
    [
      "uses 30Mi of memory, 20Mi more than it requests, priority 0",
      "uses 5Mi of memory, requests none, priority 0",
      "uses 60Mi of memory, 4Mi less than it requests, priority 7",
      "usage not known, requests none, priority 0",
    ],
  );
  const [victim] = ranked;
  assert.equal(
    victim && victimText({ ranked, running: new Set(ranked) }, victim, "memory.available"),
    "evicted for memory.available, ranked 1 of 4: uses 30Mi of memory, 20Mi more than it requests, priority 0; next: " +
      "default/b (uses 5Mi of memory, requests none, priority 0), " +
      "default/c (uses 60Mi of memory, 4Mi less than it requests, priority 7)",
  );
});

test("a pod of which a figure is missing is ranked by the rest if that exceeds its request, and else as unknown", () => {
  const part = (name: string, request: string, local: number): Candidate => {
    const containers = [{ name: "c", rootfs: undefined, logs: { bytes: 0, inodes: 0 } }];
    const volumes = [{ name: "data", isLocal: true, bytes: local * mi, inodes: undefined }];
    return { pod: podWith(name, { "ephemeral-storage": request }, { priority: -1 }), usage: { containers, volumes } };
  };
  const candidates = [part("within", "50Mi", 40), part("above", "10Mi", 40), writers[2] as Candidate];
  const ranked = rankPods(candidates, "nodefs.available", "one");
  assert.deepEqual(names(ranked), ["above", "volume", "within"]);
  assert.deepEqual(
    ranked.map((each) => placeText(each, "nodefs.available")),
    [
      "uses at least 40Mi of ephemeral-storage, 30Mi more than it requests, priority -1",
      "uses 60 of ephemeral-storage, requests none, priority 0",
      "usage not known, requests 50Mi, priority -1",
    ],
  );
  assert.deepEqual(names(rankPods(candidates, "nodefs.inodesFree", "one")), ["volume", "above", "within"]);
  assert.deepEqual(names(rankPods(candidates, "imagefs.available", "imagefs")).slice(1), ["above", "within"]);
});
