import assert from "node:assert/strict";
import { test } from "node:test";
import { testContainer, testStatus } from "../../test/support/observed.ts";
import { podView } from "../../test/support/pod-views.ts";
import { podWith } from "../../test/support/pods.ts";
import { dataClaim, disk as localDisk, RunClaimsScene } from "../../test/support/run-claims-scene.ts";
import type { StorageManifest } from "../api/storage-manifest.ts";
import type { Volume } from "../api/volume.ts";
import type { JournalEntry } from "../journal/entry.ts";
import { unwanted } from "../pods/ending.ts";
import type { WorkerPlan } from "../pods/worker-plan.ts";
import { nothingToDo } from "../runtime/actions/pod-actions.ts";
import { restartAllContainers } from "../runtime/operations/restart-all.ts";
import { podRef } from "../runtime/pod-ref.ts";
import type { ClaimView, ObjectPlan, PlanStep, PodPlan, PodView } from "../server/local-api.ts";
import { planPods } from "./plan-pods.ts";
import { type KnownStorage, type VolumePlans, volumePlans } from "./plan-volumes.ts";

function claimed(claimName: string): Volume {
  return { name: claimName, persistentVolumeClaim: { claimName } };
}

const nothing: KnownStorage = { claims: [], freeVolumes: [], given: [], objects: [] };
const pod = podWith({ containers: [{ name: "c" }], volumes: [claimed("data"), { name: "x", emptyDir: {} }] });
const { uid } = pod.metadata;
const now = 200_000;

function plansOf(more: Partial<Parameters<typeof volumePlans>[0]>): VolumePlans {
  return volumePlans({ storage: nothing, views: [], pods: new Map([[uid, pod]]), entries: () => [], now, ...more });
}

function steps(storage: KnownStorage | undefined, ...volumes: readonly Volume[]): string[] {
  const user = podWith({ containers: [{ name: "c" }], volumes: [...volumes] });
  return plansOf({ storage })
    .steps(user)
    .map(({ text }) => text);
}

function keptClaim(change: Partial<ClaimView>): ClaimView {
  const own = { namespace: "ns", name: "data", phase: "Bound", message: "", requested: "1Gi" } as const;
  return { ...own, accessModes: [], isOwn: true, usedBy: [], objects: [], ...change };
}

function planned(detail: string): ObjectPlan {
  return { kind: "PersistentVolumeClaim", namespace: "ns", name: "data", change: "added", detail };
}

test("each claim and each CSI volume has a step, with the claim's place or what comes first", () => {
  const data = "volume data (claim ns/data)";
  const disk: StorageManifest = {
    ...{ apiVersion: "v1", kind: "PersistentVolume", metadata: { name: "disk" } },
    spec: { csi: { driver: "d.example.org", volumeHandle: "h" } },
  };
  const onDisk = `stage and publish ${data}: volume h of driver d.example.org`;
  const where = "volume h of driver d.example.org";
  const free = { name: "disk", capacity: "", accessModes: [], storageClass: "", where };
  const table: readonly (readonly [Partial<KnownStorage>, string])[] = [
    [{}, `set up ${data} once the claim exists`],
    [{ objects: [planned("in /state/data")] }, `mount ${data}: /state/data`],
    [{ objects: [planned("on PersistentVolume disk")], given: [disk] }, onDisk],
    [{ objects: [planned("on PersistentVolume disk")], freeVolumes: [free] }, onDisk],
    [{ objects: [planned("on PersistentVolume disk")], claims: [keptClaim({ where })] }, onDisk],
    [{ objects: [planned("not bound: no volume")] }, `set up ${data} once the claim is bound`],
    [{ claims: [keptClaim({ phase: "Pending" })] }, `set up ${data} once the claim is bound`],
    [{ claims: [keptClaim({ where: "/exports of server s" })] }, `mount ${data}: /exports of server s`],
  ];
  for (const [known, text] of table) assert.deepEqual(steps({ ...nothing, ...known }, claimed("data")), [text]);
  assert.deepEqual(steps(nothing, { name: "in", csi: { driver: "d" } }, { name: "x", emptyDir: {} }), [
    "publish volume in by driver d",
  ]);
  const scratch = { name: "scratch", ephemeral: { volumeClaimTemplate: { spec: {} } } };
  assert.match(steps(nothing, scratch)[0] ?? "", /^set up volume scratch .* after the claim is created$/u);
  const atServer = "once it is bound (and attached, if its driver requires that)";
  assert.deepEqual(steps(undefined, claimed("data")), [`set up ${data} ${atServer}`]);
});

test("a claim's place is read as it is told for the manifests, and for the claims that there are", async () => {
  const scene = await RunClaimsScene.started();
  const csi = localDisk.replace("local: {path: /srv/disk}", "csi: {driver: d.example.org, volumeHandle: h}");
  const user = podWith({ containers: [{ name: "c" }], volumes: [claimed("data")] });
  const namespace = "default";
  const own = { ...user, metadata: { ...user.metadata, namespace } };
  const step = (...texts: readonly string[]): readonly string[] => {
    const given = scene.checked(...texts).map(({ manifest }) => manifest);
    const { claims } = scene;
    const { objects } = claims.preview(given, [own]);
    const known = { given, objects, claims: claims.views(), freeVolumes: claims.freeVolumes() };
    return plansOf({ storage: known })
      .steps(own)
      .map(({ text }) => text);
  };
  const data = "volume data (claim default/data)";
  const onDriver = `stage and publish ${data}: volume h of driver d.example.org`;
  assert.deepEqual(step(), [`set up ${data} once the claim exists`]);
  assert.deepEqual(step(dataClaim), [`mount ${data}: /state/volumes/default/data`]);
  assert.deepEqual(step(dataClaim, localDisk), [`mount ${data}: /srv/disk`]);
  assert.deepEqual(step(dataClaim, csi), [onDriver]);
  const unbound = dataClaim.replace("spec: {", "spec: {volumeName: gone, ");
  assert.deepEqual(step(unbound), [`set up ${data} once the claim is bound`]);
  await scene.take(csi);
  assert.deepEqual(step(dataClaim), [onDriver], "of a volume that is there");
  await scene.take(dataClaim);
  assert.deepEqual([step(dataClaim), step()], [[onDriver], [onDriver]], "it is bound");
});

const running: WorkerPlan = {
  ...{ ref: podRef(pod), state: { kind: "syncing" }, forgotten: false, behind: undefined, overdue: undefined },
  ...{ pendingResize: undefined, setUpFailure: undefined, underWay: [], stale: undefined, actions: nothingToDo },
};

function only(plan: Partial<WorkerPlan>, volumes: VolumePlans): PodPlan {
  const [found] = planPods([{ ...running, ...plan }], { pods: [] }, [], 0, volumes);
  assert.ok(found);
  return found;
}

const texts = (of: readonly PlanStep[]): string[] => of.map(({ text }) => text);

test("a pod that is being set up has the steps of the volumes that are left, and their waits", () => {
  const settingUp = { actions: undefined, underWay: ["start the pod"] };
  const action = {
    kind: "action",
    what: "MountVolume",
    message: "",
    data: { volume: "data" },
    seq: 1,
    time: 1,
  } as const;
  const plan = (...entries: readonly JournalEntry[]): PodPlan => only(settingUp, plansOf({ entries: () => entries }));
  const left = "set up volume data (claim ns/data) once the claim exists";
  assert.deepEqual([texts(plan().steps), plan(action).waits], [[left], []]);
  const failed = { ...action, kind: "outcome", of: 1, seq: 2, result: "failed", message: "no" } as const;
  const waits = plan(action, failed);
  assert.deepEqual([waits.steps, texts(waits.waits)], [[], ["wait: no"]]);
  assert.deepEqual(plan(action, { ...failed, result: "done" }).steps, []);
  assert.deepEqual(only({}, plansOf({})).steps, [], "it runs");
  assert.deepEqual(texts(only({ actions: { ...nothingToDo, sandboxWaitUntilMs: 1 } }, plansOf({})).steps), [left]);
  const source = testContainer({});
  const restart = { container: { name: "c" }, source, cause: { code: "RestartAllContainers", message: "" } } as const;
  // Only its name is used.
  const parts = {} as unknown as Parameters<typeof restartAllContainers>[0];
  const { name } = restartAllContainers(parts, pod, testStatus([], [source]), restart);
  assert.deepEqual(only({ actions: undefined, underWay: [name] }, plansOf({})).steps, [], "its sandbox stays");
});

test("a claim that another pod has is waited for with the pod's name, as in its verdict", () => {
  const used = "volume uses the ReadWriteOncePod access mode and is already in use by another pod";
  const action = { kind: "action", what: "MountVolume", message: "", seq: 1, time: 1 } as const;
  const entries: JournalEntry[] = [
    { ...action, data: { volume: "data" } },
    {
      ...{ ...action, kind: "outcome", of: 1, seq: 2, result: "failed" },
      message: `MountVolume.SetUp failed for volume "pv" : ${used}`,
    },
  ];
  const claims = { data: "data" };
  const views = [podView({ uid, claims }), podView({ name: "db", claims })];
  const settingUp = { actions: undefined, underWay: ["start the pod"] };
  const told = (known: readonly PodView[]): string[] =>
    texts(only(settingUp, plansOf({ entries: () => entries, views: known })).waits);
  assert.deepEqual(told(views), [`wait: volume "pv": ${used}; pod db has it, and has to end first`]);
  assert.deepEqual(told([]), [`wait: volume "pv": ${used}; the other pod has to end first`]);
});

test("a new pod's volumes are set up before its sandbox", () => {
  const preview = { pods: [{ pod, change: "added", replaces: undefined, waits: [] }] } as const;
  const [added] = planPods([], preview, [], 0, plansOf({}));
  assert.match(texts(added?.steps ?? []).join(), /^set up volume data [^,]*,create sandbox/u);
});

test("a pod that has stopped waits for its volumes, with the remedy", () => {
  const ending = unwanted({ code: "Resync", message: "stop" }, 3);
  const state = { kind: "terminated", ending, killAtMs: 0, released: false, recorded: false } as const;
  const awayDrivers = [{ name: "d", since: 0, isRegistered: false }];
  const views = [podView({ uid, state: "terminated", holdout: "volume disk (d) is held", awayDrivers })];
  const held = /^wait: volume disk \(d\) is held; driver d has been away for 3 min: start it again;/u;
  assert.match(only({ state }, plansOf({ views })).waits[0]?.text ?? "", held);
  assert.match(only({ state, forgotten: true }, plansOf({ views })).waits[0]?.text ?? "", held);
  assert.deepEqual(only({ state }, plansOf({})).waits, []);
});
