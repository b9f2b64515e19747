import assert from "node:assert/strict";
import { test } from "node:test";
import { csiHealth, type CsiState } from "./csi-health.ts";

const quiet: CsiState = {
  drivers: [],
  problem: undefined,
  unpublished: [],
  calls: [],
  volumes: [],
  staged: [],
  unknown: [],
};
const details = (state: Partial<CsiState>): string[] => csiHealth(100_000, { ...quiet, ...state }).map(detailOf);

function detailOf({ ok, warning, detail }: ReturnType<typeof csiHealth>[number]): string {
  assert.ok(ok, "the node works without them");
  return `${warning === true ? "! " : ""}${detail}`;
}

test("a node without drivers reports none, one with drivers names them", () => {
  assert.deepEqual(details({}), []);
  const volumes = [{ name: "pv-1", driver: "a", handle: "h-1" }];
  const staged = [{ name: "pv-1", driver: "a", handle: "h-1", pods: 1 }];
  assert.deepEqual(details({ drivers: ["b", "a"], volumes, staged }), [
    "drivers a, b registered, 1 volumes of pods, 1 staged",
  ]);
});

test("problems of drivers, their calls and their volumes are named", () => {
  const problem = "CSINode is not yet initialized";
  const unpublished = ["CSI driver b cannot be listed in the CSINode: its node ID is too long"];
  const call = { driver: "a", method: "NodePublishVolume", volume: "h" };
  const calls = [
    { ...call, sinceMonotonicMs: 10_000 },
    { ...call, sinceMonotonicMs: 80_000 },
    { driver: "a", method: "NodeGetInfo", volume: "", sinceMonotonicMs: 60_000 },
  ];
  const volumes = [{ name: "pv-2", driver: "gone", handle: "h-2" }];
  const staged = [{ name: "pv-3", driver: "a", handle: "h-3", pods: 0 }];
  assert.deepEqual(details({ drivers: ["a"], problem, unpublished, calls, volumes, staged }), [
    "driver a registered, 1 volumes of pods, 1 staged",
    "! CSINode is not yet initialized",
    "! CSI driver b cannot be listed in the CSINode: its node ID is too long",
    "! waiting for drivers that are not registered: volume pv-2 (gone)",
    "! a has not answered NodePublishVolume of h for 90 s, a has not answered NodeGetInfo for 40 s",
    "! staged, but used by no pod: volume pv-3 (a)",
  ]);
});

test("many problems are counted, and each volume is named once", () => {
  const volumes = Array.from({ length: 8 }, (_, index) => ({
    ...{ name: `v${index % 7}`, driver: "gone" },
    handle: `h${index % 7}`,
  }));
  assert.deepEqual(details({ volumes }), [
    "! waiting for drivers that are not registered: " +
      "volume v0 (gone), volume v1 (gone), volume v2 (gone), volume v3 (gone), volume v4 (gone) and 2 more",
  ]);
});

test("a volume of a pod that an earlier run has staged, by its handle, is named once", () => {
  const volumes = [{ name: "pv-1", driver: "gone", handle: "h-1" }];
  const staged = [
    { name: "h-1", driver: "gone", handle: "h-1", pods: 1 },
    { name: "h-2", driver: "gone", handle: "h-2", pods: 0 },
  ];
  assert.deepEqual(details({ volumes, staged }), [
    "! waiting for drivers that are not registered: volume pv-1 (gone), volume h-2 (gone)",
    "! staged, but used by no pod: volume h-2 (gone)",
  ]);
});

test("a mounted volume without a legible data file is a warning with its path", () => {
  const unknown = ["/var/lib/kubelet/pods/u1/volumes/kubernetes.io~csi/pv-1"];
  assert.deepEqual(details({ unknown }), [
    `! volumes are unknown, because a data file or a directory is damaged: ${unknown[0] ?? ""}`,
  ]);
});
