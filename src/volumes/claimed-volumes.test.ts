import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { Fixture } from "../../test/support/claimed-volumes.ts";
import { podWith } from "../../test/support/pods.ts";
import { boundClaim } from "../../test/support/storage.ts";
import { cause, needs, podOfVolumes } from "../../test/support/volumes.ts";
import type { Pod } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import { AwaitedError } from "./awaited-error.ts";

const signal = new AbortController().signal;
const root = "/var/lib/kubelet";

const pod = podOfVolumes([{ name: "data", persistentVolumeClaim: { claimName: "c" } }]);
const target = `${root}/pods/u/volumes/kubernetes.io~local-volume/pv-c`;
const missing = "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[]";
let fixture: Fixture;
beforeEach(() => (fixture = new Fixture()));

test("a claim's local volume is bind-mounted for its pod, and released without touching its content", async () => {
  await fixture.bound("c");
  await fixture.files.write("/disks/c/precious", "", 0o644);
  const mounted = await fixture.manager.mount(pod, needs, cause, signal);
  assert.deepEqual(mounted.get("data"), { hostPath: target, directoryName: "pv-c", readOnly: false, own: true });
  assert.deepEqual(await fixture.mounts.list(), [{ source: "/disks/c", target, fileSystem: "", options: ["bind"] }]);
  const { looks } = fixture.storage;
  await fixture.manager.mount(pod, needs, cause, signal);
  assert.equal(fixture.storage.looks, looks, "a container that is run again needs no API server");
  await fixture.manager.release(podRef(pod), { cause }, signal);
  assert.deepEqual(await fixture.mounts.list(), []);
  assert.equal(await fixture.files.stat(target), undefined);
  assert.ok(await fixture.files.stat("/disks/c/precious"));
});

test("a local volume is not mounted again after its mount could not be checked", async (t) => {
  await fixture.bound("c");
  await fixture.manager.mount(pod, needs, cause, signal);
  t.mock.method(fixture.mounts, "below", async () => assert.fail("a mount table that cannot be read"), { times: 1 });
  await fixture.manager.mount(pod, needs, cause, signal);
  assert.equal((await fixture.mounts.list()).length, 1);
});

test("a pod with another group than the current user of a local volume gets an Event, and the volume keeps its group", async () => {
  await fixture.bound("c");
  const of = (uid: string, fsGroup: number): Pod => {
    const sharing = podOfVolumes(pod.spec.volumes ?? [], { securityContext: { fsGroup } });
    return { ...sharing, metadata: { ...sharing.metadata, uid: uid as PodUid } };
  };
  await fixture.manager.mount(of("u1", 2000), needs, cause, signal);
  // What a bind mount does to the directory behind it.
  await fixture.files.chown("/disks/c", 0, 2000);
  await fixture.manager.mount(of("u2", 2000), needs, cause, signal);
  const told = (): string[] =>
    fixture.entries.filter(({ what }) => what === "AlreadyMountedVolume").map(({ message }) => message);
  assert.deepEqual(told(), []);
  await fixture.manager.mount(of("u3", 3000), needs, cause, signal);
  const differs = "The requested fsGroup is 3000, but the volume pv-c has GID 2000.";
  assert.deepEqual(told(), [`${differs} The volume may not be shareable.`]);
  assert.equal(fixture.files.ownerOf(target.replace("/u/", "/u3/"))?.gid, 0, "it is not given to the new group");
});

test("files in a local volume's directory without a mount are kept", async () => {
  await fixture.files.makeDirectory(target, 0o750);
  await fixture.files.write(`${target}/precious`, "", 0o644);
  await fixture.manager.release(podRef(pod), { cause }, signal);
  assert.ok(await fixture.files.stat(`${target}/precious`));
  assert.equal(await fixture.manager.keeps(pod.metadata.uid), true);
});

test("a read-only claim with mount options and a group", async () => {
  await fixture.bound("c", { mountOptions: ["noexec"] });
  const volume = fixture.storage.volumes.get("pv-c");
  assert.ok(volume);
  volume.metadata.annotations = { "pv.beta.kubernetes.io/gid": "4711" };
  const readOnly = podOfVolumes([{ name: "data", persistentVolumeClaim: { claimName: "c", readOnly: true } }]);
  const mounted = await fixture.manager.mount(readOnly, needs, cause, signal);
  assert.partialDeepStrictEqual(mounted.get("data"), { hostPath: target, readOnly: true, group: 4711 });
  assert.deepEqual((await fixture.mounts.list())[0]?.options, ["bind", "ro", "noexec"]);
});

test("with SELinux, a claim's local volume is labelled unless the claim is read-only", async () => {
  await fixture.bound("c");
  fixture.mounts.hasLabels = true;
  const { storage, node } = fixture;
  const cluster = { storage, node, byController: true, labels: () => fixture.labels };
  const manager = fixture.restart({ cluster, node: { rootDirectory: root, seLinux: true } });
  const labelled: unknown[] = [];
  for (const readOnly of [false, true]) {
    const of = podOfVolumes([{ name: "data", persistentVolumeClaim: { claimName: "c", readOnly } }]);
    const mounted = await manager.mount(of, needs, cause, signal);
    const volumeMounts = [{ name: "data", mountPath: "/data" }];
    const [mount] = await manager.mountsFor(of, { name: "app", volumeMounts }, [], mounted, signal);
    labelled.push([mount?.readonly, mount?.selinuxRelabel]);
    await manager.release(podRef(of), { cause }, signal);
  }
  assert.deepEqual(labelled, [
    [undefined, true],
    [true, undefined],
  ]);
});

test("mount options come from the older annotation if a volume has it", async () => {
  await fixture.bound("c", { mountOptions: ["noexec"] });
  const volume = fixture.storage.volumes.get("pv-c");
  assert.ok(volume);
  volume.metadata.annotations = { "volume.beta.kubernetes.io/mount-options": "nodev,nosuid" };
  await fixture.manager.mount(pod, needs, cause, signal);
  assert.deepEqual((await fixture.mounts.list())[0]?.options, ["bind", "nodev", "nosuid"]);
});

test("mount options are refused where they cannot apply", async () => {
  await fixture.bound("c", { local: undefined, hostPath: { path: "/data", type: "" }, mountOptions: ["noexec"] });
  await fixture.begins(pod);
  const unsupported = "Mount options are not supported for this volume type";
  assert.deepEqual(fixture.failures, [
    `MountVolume.MountOptionSupport check failed for volume "pv-c" : ${unsupported}`,
  ]);
});

test("a volume of a removed in-tree plugin is attached and set up by its CSI driver", async () => {
  await fixture.bound("c", { local: undefined, awsElasticBlockStore: { volumeID: "aws://a/vol-1" } });
  const name = "kubernetes.io/csi/d^vol-1";
  fixture.node.seen({ volumesInUse: [name], volumesAttached: [{ name }] });
  const status = { attached: true, attachmentMetadata: {} };
  fixture.storage.attachments.set("csi-vol-1", { metadata: { name: "csi-vol-1" }, status });
  const mounted = await fixture.manager.mount(pod, needs, cause, signal);
  assert.equal(mounted.get("data")?.hostPath, "/csi/pv-c");
  assert.deepEqual(fixture.driver.setUps, [{ attachmentName: "csi-vol-1", metadata: {} }]);
});

test("a claim of a host path without a type requires nothing of the path", async () => {
  for (const type of ["", undefined]) {
    fixture = new Fixture();
    await fixture.bound("c", { local: undefined, hostPath: { path: "/data", type } });
    const mounted = await fixture.manager.mount(pod, needs, cause, signal);
    assert.equal(mounted.get("data")?.hostPath, "/data");
  }
});

test("a claim of a host path is mounted from that path", async () => {
  await fixture.bound("c", { local: undefined, hostPath: { path: "/data", type: "DirectoryOrCreate" } });
  const mounted = await fixture.manager.mount(pod, needs, cause, signal);
  assert.equal(mounted.get("data")?.hostPath, "/data");
  assert.ok(await fixture.files.stat("/data"));
});

const unusable: readonly (readonly [string, (fixture: Fixture) => void, string])[] = [
  [
    "missing",
    (of) => of.storage.claims.clear(),
    'error processing PVC ns/c: failed to fetch PVC from API server: persistentvolumeclaims "c" not found',
  ],
  [
    "unbound",
    (of) => of.storage.claims.set("ns/c", { ...boundClaim("c"), status: { phase: "Pending" } }),
    "error processing PVC ns/c: PVC is not bound",
  ],
  [
    "deleted without protection",
    (of) =>
      of.storage.claims.set("ns/c", boundClaim("c", { deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [] })),
    "error processing PVC ns/c: PVC is being deleted",
  ],
  [
    "without a volume",
    (of) => of.storage.volumes.clear(),
    'error processing PVC ns/c: failed to fetch PV pv-c from API server: persistentvolumes "pv-c" not found',
  ],
  [
    "of a volume that is another claim's",
    (of) => of.storage.volumes.set("pv-c", { metadata: { name: "pv-c" }, spec: { claimRef: { uid: "other" } } }),
    "error processing PVC ns/c: found PV object pv-c but its pv.Spec.ClaimRef.UID other does not point to claim.UID uid-c",
  ],
  [
    "of a block volume that is to be mounted",
    (of) => Object.assign(of.storage.volumes.get("pv-c")?.spec ?? {}, { volumeMode: "Block" }),
    "volume data has volumeMode Block, but is specified in volumeMounts",
  ],
];

for (const [what, change, problem] of unusable) {
  test(`a claim that is ${what} is reported at once and rechecked until it can be used`, async () => {
    await fixture.bound("c");
    change(fixture);
    const { mounted } = await fixture.begins(pod);
    assert.deepEqual(fixture.failures, [`${missing}, failed to process volumes=[data]: ${problem}`]);
    await fixture.clock.advance(20_000);
    assert.equal(fixture.failures.length, 1, "told once while nothing changes");
    await fixture.bound("c");
    await fixture.clock.advance(10_000);
    await mounted;
    assert.equal(fixture.entries.filter(({ what: name }) => name === "VolumeWaitOver").length, 1);
    assert.deepEqual(fixture.clock.waits, []);
  });
}

test("the wait times out with the missing volumes, and the next attempt reports again", async () => {
  const { mounted } = await fixture.begins(pod);
  await fixture.clock.advance(123_000);
  const text = `error processing PVC ns/c: failed to fetch PVC from API server: persistentvolumeclaims "c" not found`;
  const failed = `${missing}, failed to process volumes=[data]: ${text}`;
  await assert.rejects(mounted, { message: failed.replace(/^U/u, "u") });
  await fixture.begins(pod);
  assert.deepEqual(fixture.failures, [failed, failed]);
});

test("a generic ephemeral volume's claim must have been created for the pod", async () => {
  await fixture.bound("p-data");
  const ephemeral = podOfVolumes([{ name: "data", ephemeral: {} }]);
  const { mounted } = await fixture.begins(ephemeral);
  const notOwner = "PVC ns/p-data was not created for pod ns/p (pod is not owner)";
  assert.deepEqual(fixture.failures, [`${missing}, failed to process volumes=[data]: ${notOwner}`]);
  const ownerReferences = [{ uid: "u", controller: true }];
  fixture.storage.claims.set("ns/p-data", boundClaim("p-data", { ownerReferences }));
  await fixture.clock.advance(1000);
  assert.equal((await mounted).size, 1);
});

test("a volume of other nodes is rejected by its node affinity", async () => {
  const key = "kubernetes.io/hostname";
  const matchExpressions = [{ key, operator: "In", values: ["n2"] }];
  await fixture.bound("c", { nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } } });
  const { mounted } = await fixture.begins(pod);
  const failed = 'MountVolume.NodeAffinity check failed for volume "pv-c" : no matching NodeSelectorTerms';
  assert.deepEqual(fixture.failures, [failed]);
  assert.deepEqual(await fixture.mounts.list(), []);
  fixture.labels = { [key]: "n2" };
  await fixture.clock.advance(500);
  await mounted;
});

test("a host path that exists is not used by a pod that may not use its PersistentVolume", async () => {
  await fixture.files.makeDirectory("/data", 0o755);
  const matchExpressions = [{ key: "kubernetes.io/hostname", operator: "In", values: ["n2"] }];
  const nodeAffinity = { required: { nodeSelectorTerms: [{ matchExpressions }] } };
  await fixture.bound("c", { local: undefined, hostPath: { path: "/data", type: "" }, nodeAffinity });
  await fixture.begins(pod);
  const failed = 'MountVolume.NodeAffinity check failed for volume "pv-c" : no matching NodeSelectorTerms';
  assert.deepEqual(fixture.failures, [failed]);
});

test("a second pod waits for a ReadWriteOncePod claim, also if the first pod is from an earlier run", async () => {
  await fixture.bound("c", { accessModes: ["ReadWriteOncePod"] });
  await fixture.manager.mount(pod, needs, cause, signal);
  fixture.begin();
  const second: Pod = { ...pod, metadata: { ...pod.metadata, ...podWith({}, { name: "q", uid: "v" }).metadata } };
  const { mounted } = await fixture.begins(second);
  const used = "volume uses the ReadWriteOncePod access mode and is already in use by another pod";
  assert.deepEqual(fixture.failures, [`MountVolume.SetUp failed for volume "pv-c" : ${used}`]);
  // Far into its back-off, it continues at the release and not at the next retry.
  await fixture.clock.advance(20_000);
  const before = fixture.failures.length;
  await fixture.manager.release(podRef(pod), { cause }, signal);
  assert.equal((await mounted).size, 1);
  assert.equal(fixture.failures.length, before);
});

test("volumes that no container uses are neither set up nor waited for", async () => {
  const unused = { ...pod.spec, containers: [{ name: "app" }] };
  assert.equal((await fixture.manager.mount({ ...pod, spec: unused }, needs, cause, signal)).size, 0);
  assert.equal(fixture.storage.looks, 0);
});

test("types without a plugin are named", async () => {
  await fixture.bound("c", { local: undefined, iscsi: { targetPortal: "s" } });
  await fixture.begins(pod);
  const failed = "volumes of type iscsi are not supported";
  assert.deepEqual(fixture.failures, [`${missing}, failed to process volumes=[data]: ${failed}`]);
});

test("an attachable volume is in use before the attachment is awaited, and set up with the attachment's metadata", async () => {
  await fixture.bound("c", { local: undefined, csi: { driver: "d", volumeHandle: "h" } });
  const { node, storage, driver } = fixture;
  const name = "kubernetes.io/csi/d^h";
  const { mounted } = await fixture.begins(pod);
  assert.deepEqual(node.used, [name]);
  node.seen({ volumesInUse: [name] });
  await fixture.clock.advance(0);
  node.seen({ volumesInUse: [name], volumesAttached: [{ name }] });
  const status = { attached: true, attachmentMetadata: { device: "/dev/sdx" } };
  storage.attachments.set("csi-h", { metadata: { name: "csi-h" }, status });
  await mounted;
  assert.deepEqual(driver.setUps, [{ attachmentName: "csi-h", metadata: { device: "/dev/sdx" } }]);
  const waits = fixture.entries.filter(({ what }) => what === "VolumeUnattached").map(({ message }) => message);
  assert.deepEqual(waits, [
    "volume data is not attached yet: volume has not been added to the list of VolumesInUse in the node's volume status",
    "volume data is not attached yet: volume is not in the list of VolumesAttached in the node's status",
  ]);
  await fixture.manager.release(podRef(pod), { cause }, signal);
  assert.deepEqual(node.used, []);
});

test("a volume that waits for its driver is set up as soon as the driver registers", async () => {
  await fixture.bound("c", { local: undefined, csi: { driver: "d", volumeHandle: "h" } });
  const { node, storage, driver } = fixture;
  const name = "kubernetes.io/csi/d^h";
  node.seen({ volumesInUse: [name], volumesAttached: [{ name }] });
  storage.attachments.set("csi-h", { metadata: { name: "csi-h" }, status: { attached: true } });
  const registered = Promise.withResolvers<void>();
  driver.problem = new AwaitedError("no driver", registered.promise, { cause: new VolumeError("not in the list") });
  const { mounted } = await fixture.begins(pod);
  await fixture.clock.advance(40_000);
  assert.deepEqual(driver.setUps, []);
  driver.problem = undefined;
  registered.resolve();
  await fixture.clock.advance(0);
  await mounted;
  assert.equal(driver.setUps.length, 1);
});

test("a pod whose volume exceeds its driver's limit fails within a second", async () => {
  await fixture.bound("c", { local: undefined, csi: { driver: "d", volumeHandle: "h" } });
  const { mounted } = await fixture.begins(pod);
  const attachError = { message: "too many", errorCode: 8 };
  fixture.storage.attachments.set("csi-h", { metadata: { name: "csi-h" }, status: { attachError } });
  await fixture.clock.advance(1000);
  const text = "unmounted volumes=[data], unattached volumes=[data], failed to process volumes=[]: too many";
  await assert.rejects(mounted, { name: "AttachLimitError", message: text });
  const message = `Pod was rejected: Node has reached its volume attachment limit, rejecting pod. ${text}`;
  assert.deepEqual(fixture.rejected, [{ reason: "VolumeAttachmentLimitExceeded", message }]);
  assert.equal(fixture.driver.limits, 1, "its count on the node is out of date");
});

test("a wait is over when it turns out that the volume need not be attached", async () => {
  await fixture.bound("c", { local: undefined, csi: { driver: "d", volumeHandle: "h" } });
  const { driver } = fixture;
  driver.attaches = "unknown";
  driver.problem = new Error("it is not mounted");
  await fixture.begins(pod);
  const told = (what: string): number => fixture.entries.filter((entry) => entry.what === what).length;
  assert.deepEqual([told("VolumeUnattached"), told("VolumeWaitOver")], [1, 0]);
  driver.attaches = "no";
  await fixture.clock.advance(1000);
  assert.deepEqual([told("VolumeUnattached"), told("VolumeWaitOver")], [1, 1]);
});

test("without the attach-detach controller nothing waits for it", async () => {
  await fixture.bound("c", { local: undefined, csi: { driver: "d", volumeHandle: "h" } });
  fixture.begin(false);
  const { mounted } = await fixture.begins(pod);
  await fixture.clock.advance(123_000);
  await assert.rejects(mounted, /attaching volumes from .*not supported \(enableControllerAttachDetach is false\)$/u);
  const why = "attaching volumes from the kubelet is not supported (enableControllerAttachDetach is false)";
  const failed = `AttachVolume.Attach failed for volume "pv-c" : ${why}`;
  assert.deepEqual(new Set(fixture.failures), new Set([failed]));
  assert.equal(fixture.failures.length, 8, "with each attempt");
});

test("a running pod's volume is managed in parallel to its steps, until its volumes are removed", async () => {
  await fixture.bound("c", { local: undefined, csi: { driver: "d", volumeHandle: "h" } });
  const { node, storage, driver } = fixture;
  const name = "kubernetes.io/csi/d^h";
  node.seen({ volumesInUse: [name], volumesAttached: [{ name }] });
  storage.attachments.set("csi-h", { metadata: { name: "csi-h" }, status: { attached: true } });
  assert.equal(await fixture.manager.refresh(pod, cause, signal), true);
  await fixture.clock.advance(0);
  assert.equal(driver.kept.length, 1, "a pod of an earlier life, too");
  await fixture.manager.refresh(pod, cause, signal);
  await fixture.clock.advance(0);
  assert.equal(driver.kept.length, 1, "one at a time");
  assert.equal(driver.prepared, 1, "once for the pod, not with each sync");
  await fixture.manager.release(podRef(pod), { cause }, signal);
  assert.equal(driver.kept[0]?.aborted, true);
});
