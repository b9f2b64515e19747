import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { CsiScene, csiSpec, noAttachment, podOf, root } from "../../test/support/csi-scene.ts";
import type { PersistentVolumeClaim } from "../api/persistent-volume-claim.ts";
import { Emitter } from "../base/emitter.ts";
import { eventsOf } from "../events/entry-events.ts";
import type { JournalEntry } from "../journal/entry.ts";
import type { PreparedVolume } from "../volumes/volume-plugin.ts";
import type { VolumeSpec } from "../volumes/volume-spec.ts";

type Status = NonNullable<PersistentVolumeClaim["status"]>;

const { signal } = new AbortController();
const retries = new Emitter();
const staged = `${root}/plugins/kubernetes.io/csi/d/`;
const pending = { type: "FileSystemResizePending", status: "True" };
const waiting: Status = {
  phase: "Bound",
  capacity: { storage: "1Gi" },
  allocatedResources: { storage: "2Gi" },
  allocatedResourceStatuses: { storage: "NodeResizePending" },
  conditions: [pending],
};

/** Of the PersistentVolume. */
let version = 0;

/** The claim and its volume as now in the API server. */
function specNow(): VolumeSpec {
  const spec = csiSpec();
  const persistentVolume = scene.storage.volumes.get("pv");
  return { ...spec, persistentVolume, claim: scene.storage.claims.get("ns/c") };
}

function sizes(volume: string, status: Status): void {
  const { persistentVolume } = csiSpec({ capacity: { storage: volume } });
  assert.ok(persistentVolume);
  const metadata = { ...persistentVolume.metadata, uid: "uid-pv", resourceVersion: `${++version}` };
  scene.storage.volumes.set("pv", { ...persistentVolume, metadata });
  scene.storage.claims.set("ns/c", {
    metadata: { name: "c", namespace: "ns", uid: "uid-c", resourceVersion: "1" },
    spec: { volumeName: "pv", resources: { requests: { storage: volume } } },
    status,
  });
}

/** The kubelet's work for a running pod at each sync; retries of a failed expansion continue in parallel. */
async function sync(volume: PreparedVolume): Promise<void> {
  const upkeep = volume.upkeeps?.find(({ name }) => name === "expansion");
  assert.ok(upkeep);
  if (!upkeep.isDue()) return;
  upkeep.run(signal, noAttachment, retries).catch(assert.fail);
  await scene.clock.advance(0);
}

function claimStatus(): Status | undefined {
  return scene.storage.claims.get("ns/c")?.status;
}

function events(): string[] {
  const all = scene.entries.flatMap((entry) => eventsOf(entry as JournalEntry));
  return all.map(({ reason, message, claim }) => `${claim?.name ?? "pod"} ${reason}: ${message}`);
}

function expansions(): readonly Readonly<Record<string, unknown>>[] {
  return scene.calls.filter(({ method }) => method === "nodeExpandVolume").map(({ request }) => request);
}

const succeeded = 'FileSystemResizeSuccessful: MountVolume.NodeExpandVolume succeeded for volume "pv" node1';
let scene: CsiScene;
beforeEach(async () => {
  scene = new CsiScene();
  await scene.begin();
  sizes("1Gi", { phase: "Bound", capacity: { storage: "1Gi" } });
});

test("a volume that has grown is expanded once for all its running pods, and its claim shows it", async () => {
  const [a, b] = [await scene.setUp(podOf("a"), specNow()), await scene.setUp(podOf("b"), specNow())];
  await sync(a);
  assert.deepEqual(expansions(), []);
  sizes("2Gi", waiting);
  await sync(a);
  assert.deepEqual(expansions(), [], "it was looked at just now");
  await scene.clock.advance(10_000);
  await Promise.all([sync(a), sync(b)]);
  const [call, ...others] = expansions();
  assert.deepEqual(others, []);
  assert.equal(call?.["volumePath"], a.hostPath);
  assert.match(String(call?.["stagingTargetPath"]), new RegExp(`^${staged}[0-9a-f]{64}/globalmount$`, "u"));
  assert.deepEqual(call?.["capacityRange"], { requiredBytes: 2n << 30n });
  assert.deepEqual(claimStatus(), {
    ...{ phase: "Bound", capacity: { storage: "2Gi" }, allocatedResources: { storage: "2Gi" } },
    allocatedResourceStatuses: {},
    conditions: [],
  });
  assert.deepEqual(scene.storage.patches.at(0), {
    metadata: { resourceVersion: "1" },
    status: { allocatedResourceStatuses: { storage: "NodeResizeInProgress" } },
  });
  assert.deepEqual(events().slice(-2), [`pod ${succeeded}`, `c ${succeeded}`]);
  await scene.clock.advance(10_000);
  await Promise.all([sync(a), sync(b)]);
  assert.equal(expansions().length, 1);
});

test("a volume is compared again once it has changed, and after a failed expansion", async () => {
  const volume = await scene.setUp(podOf("a"), specNow());
  const look = async (): Promise<void> => {
    await scene.clock.advance(10_000);
    await sync(volume);
  };
  for (let looks = 0; looks < 3; looks++) await look();
  assert.deepEqual(expansions(), []);
  assert.equal(scene.storage.unchanged, 2, "the first look is at the object");
  sizes("2Gi", waiting);
  scene.fail("nodeExpandVolume", "Internal");
  await look();
  await scene.clock.advance(60_000);
  assert.ok(expansions().length > 1, "the failed one is retried, though the PersistentVolume has not changed since");
  assert.equal(claimStatus()?.capacity?.["storage"], "2Gi");
});

test("a volume that grew while unused is expanded for its next pod, before that pod uses it", async () => {
  sizes("2Gi", waiting);
  const volume = await scene.setUp(podOf("a"), specNow());
  assert.deepEqual(scene.effects, ["nodeStageVolume", "nodePublishVolume", "nodeExpandVolume"]);
  const [call] = expansions();
  assert.equal(call?.["volumePath"], volume.hostPath);
  assert.match(String(call?.["stagingTargetPath"]), /\/globalmount$/u);
  assert.deepEqual(claimStatus()?.capacity, { storage: "2Gi" });
});

test("a volume is expanded without staging too, and a block volume at its device", async () => {
  scene.capabilities = [3];
  sizes("2Gi", waiting);
  const volume = await scene.setUp(podOf("a"), specNow());
  assert.deepEqual(scene.effects, ["nodePublishVolume", "nodeExpandVolume"]);
  assert.equal(expansions()[0]?.["volumePath"], volume.hostPath);
  await scene.tearDown("a");

  scene.capabilities = [1, 3];
  await scene.begin();
  sizes("2Gi", waiting);
  const block = csiSpec({ volumeMode: "Block", capacity: { storage: "2Gi" } });
  await scene.setUp(podOf("b"), { ...block, claim: scene.storage.claims.get("ns/c") });
  const devices = `${root}/plugins/kubernetes.io/csi/volumeDevices`;
  assert.equal(expansions().at(-1)?.["volumePath"], `${devices}/publish/pv/b`);
  assert.equal(expansions().at(-1)?.["stagingTargetPath"], `${devices}/staging/pv`);
});

test("a failed expansion does not affect the running pod, is reported, and is retried with a back-off", async () => {
  const volume = await scene.setUp(podOf("a"), specNow());
  sizes("2Gi", waiting);
  for (let times = 0; times < 2; times++) scene.fail("nodeExpandVolume", "Internal");
  await scene.clock.advance(10_000);
  await sync(volume);
  const why = "Expander.NodeExpand failed to expand the volume : rpc error: code = Internal desc = by command";
  const failed = `NodeExpandVolume.NodeExpandVolume failed for volume "pv" : ${why}`;
  assert.deepEqual(events().slice(-1), [`pod VolumeResizeFailed: ${failed}`]);
  assert.deepEqual(
    claimStatus()?.conditions?.map(({ type, message = "" }) => `${type} ${message}`.trim()),
    ["FileSystemResizePending", `NodeResizeError failed to expand pvc with ${why}`],
  );
  assert.deepEqual(claimStatus()?.allocatedResourceStatuses, { storage: "NodeResizeInProgress" });
  await scene.clock.advance(500);
  assert.equal(expansions().length, 2);
  assert.equal(
    volume.upkeeps?.some((upkeep) => upkeep.name === "expansion" && upkeep.isDue()),
    false,
  );
  await scene.clock.advance(999);
  assert.equal(expansions().length, 2);
  await scene.clock.advance(1);
  assert.equal(expansions().length, 3);
  assert.deepEqual(claimStatus()?.conditions, []);
  assert.equal(await volume.isSetUp(), true);
});

test("a failed expansion is retried at once on request, and then waits longer", async () => {
  const volume = await scene.setUp(podOf("a"), specNow());
  sizes("2Gi", waiting);
  for (let times = 0; times < 6; times++) scene.fail("nodeExpandVolume", "Internal");
  await scene.clock.advance(10_000);
  await sync(volume);
  await scene.clock.advance(500 + 1000 + 2000 + 4000);
  assert.equal(expansions().length, 5);
  retries.emit();
  await scene.clock.advance(15_999);
  assert.equal(expansions().length, 6);
  await scene.clock.advance(1);
  assert.deepEqual(claimStatus()?.capacity, { storage: "2Gi" });
});

test("while one pod's retry is pending, no other pod retries", async () => {
  const [a, b] = [await scene.setUp(podOf("a"), specNow()), await scene.setUp(podOf("b"), specNow())];
  sizes("2Gi", waiting);
  for (let times = 0; times < 7; times++) scene.fail("nodeExpandVolume", "Internal");
  await scene.clock.advance(10_000);
  await sync(a);
  await scene.clock.advance(500 + 1000 + 2000 + 4000 + 8000);
  assert.equal(expansions().length, 6);
  await scene.clock.advance(11_000);
  await sync(b);
  assert.equal(expansions().length, 6);
  await scene.clock.advance(60_000);
  assert.deepEqual(claimStatus()?.capacity, { storage: "2Gi" });
});

test("an expansion that the driver rejects for good is reported in the claim, and retried only for another size", async () => {
  const volume = await scene.setUp(podOf("a"), specNow());
  sizes("2Gi", waiting);
  scene.fail("nodeExpandVolume", "OutOfRange");
  await scene.clock.advance(10_000);
  await sync(volume);
  assert.deepEqual(claimStatus()?.allocatedResourceStatuses, { storage: "NodeResizeInfeasible" });
  const why = "Expander.NodeExpand failed to expand the volume rpc error: code = OutOfRange desc = by command";
  assert.equal(claimStatus()?.conditions?.at(-1)?.message, `failed to expand pvc with ${why}`);
  await scene.clock.advance(60_000);
  await sync(volume);
  assert.equal(expansions().length, 1);
  sizes("3Gi", { ...waiting, allocatedResources: { storage: "3Gi" } });
  await scene.clock.advance(10_000);
  await sync(volume);
  assert.equal(expansions().length, 2);
  assert.deepEqual(claimStatus()?.capacity, { storage: "3Gi" });
});

test("a failed size that is no longer requested is reported as infeasible", async () => {
  const volume = await scene.setUp(podOf("a"), specNow());
  sizes("2Gi", waiting);
  for (let times = 0; times < 2; times++) scene.fail("nodeExpandVolume", "Internal");
  await scene.clock.advance(10_000);
  await sync(volume);
  const claim = scene.storage.claims.get("ns/c");
  assert.ok(claim);
  claim.spec.resources = { requests: { storage: "1536Mi" } };
  await scene.clock.advance(500);
  assert.deepEqual(claimStatus()?.allocatedResourceStatuses, { storage: "NodeResizeInfeasible" });
});

test("a call with an unknown outcome is recorded too, and given up only for another size", async () => {
  const volume = await scene.setUp(podOf("a"), specNow());
  sizes("2Gi", waiting);
  for (let times = 0; times < 3; times++) scene.fail("nodeExpandVolume", "DeadlineExceeded");
  await scene.clock.advance(10_000);
  await sync(volume);
  await scene.clock.advance(500);
  assert.deepEqual(
    claimStatus()?.conditions?.map(({ type }) => type),
    ["FileSystemResizePending", "NodeResizeError"],
  );
  assert.deepEqual(claimStatus()?.allocatedResourceStatuses, { storage: "NodeResizeInProgress" });
  const claim = scene.storage.claims.get("ns/c");
  assert.ok(claim);
  claim.spec.resources = { requests: { storage: "1536Mi" } };
  await scene.clock.advance(1000);
  assert.deepEqual(claimStatus()?.allocatedResourceStatuses, { storage: "NodeResizeInfeasible" });
});

test("while its driver is absent, nothing is recorded", async () => {
  const volume = await scene.setUp(podOf("a"), specNow());
  sizes("2Gi", waiting);
  scene.drivers.remove("d");
  await scene.clock.advance(10_000);
  await sync(volume);
  assert.deepEqual(claimStatus()?.conditions, [pending]);
});

test("a driver that does not expand volumes in use is called once, and delays no pod's start", async () => {
  sizes("2Gi", waiting);
  scene.fail("nodeExpandVolume", "FailedPrecondition");
  const volume = await scene.setUp(podOf("a"), specNow());
  await scene.clock.advance(60_000);
  await sync(volume);
  assert.equal(expansions().length, 1);
  assert.equal(await volume.isSetUp(), true);
});

test("an expansion that succeeds after the driver refused one is recorded, and one that then fails is retried", async () => {
  sizes("2Gi", waiting);
  scene.fail("nodeExpandVolume", "FailedPrecondition");
  await scene.setUp(podOf("a"), specNow());
  scene.fail("nodeExpandVolume", "Internal");
  await assert.rejects(scene.setUp(podOf("b"), specNow()), /code = Internal/);
  await scene.setUp(podOf("b"), specNow());
  assert.equal(expansions().length, 3);
  const { capacity, conditions, allocatedResourceStatuses = {} } = claimStatus() ?? {};
  assert.deepEqual([capacity, conditions, Object.keys(allocatedResourceStatuses)], [{ storage: "2Gi" }, [], []]);
});

test("a failed expansion of a volume that another node has expanded is recorded", async () => {
  const volume = await scene.setUp(podOf("a"), specNow());
  sizes("2Gi", { phase: "Bound", capacity: { storage: "2Gi" }, allocatedResources: { storage: "2Gi" } });
  const claim = scene.storage.claims.get("ns/c");
  assert.ok(claim);
  claim.spec.accessModes = ["ReadWriteMany"];
  scene.fail("nodeExpandVolume", "Internal");
  await scene.clock.advance(10_000);
  await sync(volume);
  assert.deepEqual(
    claimStatus()?.conditions?.map(({ type }) => type),
    ["NodeResizeError"],
  );
});

test("a shared volume that another node has expanded is expanded here too, without changing its claim", async () => {
  const volume = await scene.setUp(podOf("a"), specNow());
  const status = { phase: "Bound", capacity: { storage: "2Gi" }, allocatedResources: { storage: "2Gi" } };
  sizes("2Gi", status);
  const claim = scene.storage.claims.get("ns/c");
  assert.ok(claim);
  claim.spec.accessModes = ["ReadWriteMany"];
  await scene.clock.advance(10_000);
  await sync(volume);
  await scene.clock.advance(10_000);
  await sync(volume);
  assert.equal(expansions().length, 1);
  // One that no other node can have is done by its controller alone.
  sizes("3Gi", { ...status, capacity: { storage: "3Gi" }, allocatedResources: { storage: "3Gi" } });
  await scene.clock.advance(10_000);
  await sync(volume);
  assert.equal(expansions().length, 1);
  assert.deepEqual(scene.storage.patches, []);
});

test("a claim's size is its allocated one, however large the volume was requested earlier", async () => {
  const volume = await scene.setUp(podOf("a"), specNow());
  sizes("3Gi", waiting);
  await scene.clock.advance(10_000);
  await sync(volume);
  assert.deepEqual(expansions()[0]?.["capacityRange"], { requiredBytes: 2n << 30n });
  assert.deepEqual(claimStatus()?.capacity, { storage: "2Gi" });
});

test("the claim of an older resizer only shows the final state", async () => {
  const volume = await scene.setUp(podOf("a"), specNow());
  sizes("2Gi", { phase: "Bound", capacity: { storage: "1Gi" }, conditions: [pending] });
  await scene.clock.advance(10_000);
  await sync(volume);
  assert.equal(scene.storage.patches.length, 1);
  assert.deepEqual(claimStatus()?.capacity, { storage: "2Gi" });
  assert.deepEqual(claimStatus()?.conditions, []);
});

test("a read-only claim is not expanded, nor is any claim of a driver without EXPAND_VOLUME", async () => {
  sizes("2Gi", waiting);
  const volume = await scene.setUp(podOf("a"), { ...specNow(), readOnly: true });
  const told =
    'FileSystemResizeFailed: MountVolume.NodeExpandVolume failed for volume "pv" requested read-only file system';
  assert.deepEqual(events(), [`pod ${told}`, `c ${told}`]);
  await scene.clock.advance(60_000);
  await sync(volume);
  await scene.tearDown("a");

  scene.capabilities = [1];
  await scene.begin();
  const other = await scene.setUp(podOf("b"), specNow());
  await scene.clock.advance(60_000);
  await sync(other);
  assert.deepEqual(expansions(), []);
  assert.deepEqual(scene.storage.patches, []);
});

test("an expansion that fails before the pod starts is reported as a failed mount", async () => {
  sizes("2Gi", waiting);
  scene.fail("nodeExpandVolume", "Internal");
  const why = "Expander.NodeExpand failed to expand the volume : rpc error: code = Internal desc = by command";
  const step = "MountVolume.Setup failed while expanding volume";
  await assert.rejects(scene.setUp(podOf("a"), specNow()), { message: `${step} for volume "pv" : ${why}` });
  await scene.setUp(podOf("a"), specNow());
  assert.deepEqual(claimStatus()?.capacity, { storage: "2Gi" });
});
