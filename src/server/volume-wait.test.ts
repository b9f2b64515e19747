import assert from "node:assert/strict";
import { test } from "node:test";
import { containerView, podView } from "../../test/support/pod-views.ts";
import type { JournalEntry, JournalInput } from "../journal/entry.ts";
import { verdict } from "./verdict.ts";
import { volumeProgress, volumeWait } from "./volume-wait.ts";

type Told = Pick<JournalInput, "kind" | "what" | "message"> & Partial<JournalEntry>;

function entries(...told: readonly Told[]): JournalEntry[] {
  return told.map((each, index) => ({ seq: index + 1, time: index * 1000, ...each }));
}

const unprocessed = (problem: string): Told => ({
  kind: "observation",
  what: "VolumeUnprocessed",
  message: `Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], failed to process volumes=[data]: ${problem}`,
});
const set = (volume: string): Told => ({ kind: "action", what: "MountVolume", message: "set up", data: { volume } });
const failed = (of: number, message: string): Told => ({
  ...{ kind: "outcome", what: "MountVolume", of, result: "failed" },
  message: `MountVolume.SetUp failed for volume "disk" : ${message}`,
});
const over = ({ message }: Told): Told => ({ kind: "observation", what: "VolumeWaitOver", message });

test("an unusable claim is named, with a remedy", () => {
  const table = [
    [
      'error processing PVC default/data: failed to fetch PVC from API server: persistentvolumeclaims "data" not found',
      "claim default/data does not exist; create it, or correct claimName",
    ],
    [
      `error processing PVC default/data: failed to fetch PVC from API server: persistentvolumeclaims "data" not found; add the PersistentVolumeClaim to the manifests of 'podwright run'`,
      "claim default/data does not exist; add the PersistentVolumeClaim to the manifests of 'podwright run'",
    ],
    ["error processing PVC default/data: PVC is not bound", "claim default/data is not bound; see its Events"],
    [
      "error processing PVC default/data: PVC is not bound: no persistent volumes available for this claim and a selector is set",
      "claim default/data: PVC is not bound: no persistent volumes available for this claim and a selector is set; add a matching PersistentVolume",
    ],
    [
      "PVC default/web-data was not created for pod default/web (pod is not owner)",
      "PVC default/web-data was not created for pod default/web (pod is not owner); remove the claim, or rename the pod",
    ],
    [
      "volume data has volumeMode Block, but is specified in volumeMounts",
      "volume data has volumeMode Block, but is specified in volumeMounts; use volumeDevices",
    ],
  ] as const;
  for (const [problem, expected] of table) assert.equal(volumeWait(entries(unprocessed(problem))), expected);
});

test("a volume that fails is named until it is set up", () => {
  const driver = "driver name d not found in the list of registered CSI drivers";
  const waits = entries(set("data"), failed(1, driver));
  assert.equal(volumeWait(waits), `volume "disk": ${driver}; run the driver on this node`);
  const unavailable = "rpc error: code = Unavailable desc = connection refused";
  assert.equal(
    volumeWait(entries(set("data"), failed(1, unavailable))),
    `volume "disk": ${unavailable}; see whether its driver runs, and the driver's log`,
  );
  assert.equal(
    volumeWait(entries(set("data"), failed(1, 'configmap "c" not found'), set("data"))),
    'volume "disk": configmap "c" not found; create it, or correct its name',
  );
  const done = { kind: "outcome", what: "MountVolume", message: "done", of: 3, result: "done" } as const;
  assert.equal(volumeWait(entries(set("data"), failed(1, driver), set("data"), done)), undefined);
  const other = { ...done, of: 4 };
  assert.equal(
    volumeWait(entries(set("data"), failed(1, driver), set("data"), set("other"), other)),
    volumeWait(waits),
  );
});

test("the reason of an attachment's wait is shown, and all waiting volumes are counted", () => {
  const message = "volume data is not attached yet: no VolumeAttachment";
  const attach: Told = { kind: "observation", what: "VolumeUnattached", message };
  assert.equal(volumeWait(entries(attach)), `${message}; see its VolumeAttachment`);
  const local = { ...attach, message: "volume data is not attached yet: driver d has no CSIDriver object: give it" };
  assert.equal(volumeWait(entries(local)), local.message, "nobody makes a VolumeAttachment");
  const claim = unprocessed("error processing PVC default/data: PVC is not bound");
  assert.equal(volumeWait(entries(attach, claim)), `${message}; see its VolumeAttachment (and 1 more)`);
  assert.equal(volumeWait(entries(attach, claim, over(attach), over(claim))), undefined);
});

test("earlier waits are ignored once a container starts, or the pod is recreated", () => {
  const claim = unprocessed("error processing PVC default/data: PVC is not bound");
  assert.equal(volumeWait(entries(claim, { kind: "action", what: "StartContainer", message: "" })), undefined);
  assert.equal(volumeWait(entries(claim, { kind: "input", what: "PodAdded", message: "" })), undefined);
});

test("a verdict has a wait whole: its remedy may be anywhere in it", () => {
  const problem =
    'path "/state/volumes/default/gone" does not exist: the directory of claim default/gone was removed, or its disk is ' +
    "not mounted; restore it, or stop its pods, remove the claim with 'podwright volumes rm --force default/gone', and run them again";
  const containers = [containerView({ state: "waiting", ready: false, reason: "ContainerCreating" })];
  const pod = podView({ phase: "Pending", ready: false, containers });
  const told = verdict({ pod, entries: entries(set("pv-1"), failed(1, problem)), startSeq: 0, now: 0 });
  assert.equal(told, `Pending: waits for a volume: volume "disk": ${problem}`);
});

test("all waits of a pod that is set up are known, and the volumes that are", () => {
  const done = { kind: "outcome", what: "MountVolume", message: "done", of: 2, result: "done" } as const;
  const told = entries({ kind: "input", what: "PodAdded", message: "" }, set("a"), done, set("b"), failed(4, "no"));
  const { waits, isSetUp } = volumeProgress(told);
  assert.deepEqual(waits, [{ text: 'volume "disk": no', volume: "b" }]);
  assert.deepEqual(["a", "b", "c"].map(isSetUp), [true, false, false]);
});

test("a volume stays set up over podwright's restart, until the pod's volumes are removed or it is set up again", () => {
  const done = { kind: "outcome", what: "MountVolume", message: "done", of: 2, result: "done" } as const;
  const added = { kind: "input", what: "PodAdded", message: "" } as const;
  const isSetUp = (...later: readonly Told[]): boolean => {
    return volumeProgress(entries(added, set("a"), done, ...later)).isSetUp("a");
  };
  assert.equal(isSetUp(added), true, "each run adds the pod");
  assert.equal(isSetUp({ kind: "action", what: "UnmountVolumes", message: "remove volumes a" }, added), false);
  assert.equal(isSetUp({ kind: "decision", what: "PodFinished", message: "" }, added), false);
  assert.equal(isSetUp(added, set("a")), false, "its mount was lost");
  assert.equal(isSetUp(added, set("a"), { ...done, of: 5 }), true);
  const waits = volumeProgress(entries(added, set("a"), failed(2, "no"), added));
  assert.deepEqual([waits.waits, waits.isSetUp("a")], [[], false], "an earlier run's wait");
});
