import assert from "node:assert/strict";
import { test } from "node:test";
import {
  asked,
  dataClaim,
  disk,
  never,
  pod,
  RunClaimsScene,
  size,
  template,
  using,
} from "../../test/support/run-claims-scene.ts";
import { PodwrightError } from "../base/errors.ts";

const rejection = (remedy: RegExp, message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof PodwrightError);
  assert.match(error.message, message);
  assert.match(error.remedy ?? "", remedy);
  return true;
};

test("a claim gets a directory that any user in a pod may write to and only root on the machine reaches", async () => {
  const fixture = await RunClaimsScene.started();
  await fixture.take(dataClaim);
  assert.equal(await fixture.path("data"), "/state/volumes/default/data");
  assert.equal((await fixture.files.stat("/state/volumes/default/data"))?.mode, 0o777);
  assert.equal((await fixture.files.stat("/state/volumes"))?.mode, 0o700);
  const claim = await fixture.claims.claim("default", "data", never);
  assert.equal(claim.status?.phase, "Bound");
  const volume = await fixture.claims.persistentVolume(claim.spec.volumeName ?? "", never);
  assert.equal(volume.spec.claimRef?.uid, claim.metadata.uid);
  assert.deepEqual(volume.spec.accessModes, ["ReadWriteOnce"]);
  assert.deepEqual(fixture.journal.messages("ClaimBound"), [
    "claim default/data is bound to directory /state/volumes/default/data",
  ]);
});

test("claims and their data are found again by name, also when the document is given again", async () => {
  const fixture = await RunClaimsScene.started();
  await fixture.take(dataClaim);
  await fixture.files.write("/state/volumes/default/data/file", "kept", 0o644);
  const before = await fixture.claims.claim("default", "data", never);
  assert.deepEqual(await fixture.restart(), []);
  await fixture.take(dataClaim);
  assert.deepEqual(await fixture.claims.claim("default", "data", never), before);
  assert.equal(fixture.journal.messages("ClaimBound").length, 1);
  assert.ok(await fixture.files.stat("/state/volumes/default/data/file"));
});

test("fields of a claim from another cluster are ignored", async () => {
  const fixture = await RunClaimsScene.started();
  await fixture.take(`apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: data
  uid: of-another-cluster
  resourceVersion: "7"
  finalizers: [kubernetes.io/pvc-protection]
  annotations: {pv.kubernetes.io/bind-completed: "yes", pv.kubernetes.io/bound-by-controller: "yes", mine: "1"}
spec: {accessModes: [ReadWriteOnce], ${size}, volumeName: pvc-elsewhere, storageClassName: gp3}
status: {phase: Bound}`);
  assert.equal(await fixture.path("data"), "/state/volumes/default/data");
  const { metadata } = await fixture.claims.claim("default", "data", never);
  assert.notEqual(metadata.uid, "of-another-cluster");
  assert.equal(metadata.annotations?.["mine"], "1");
});

test("a claim without a document is not found, with upstream's message and the remedy", async () => {
  const fixture = await RunClaimsScene.started();
  fixture.present = [using("data")];
  await assert.rejects(fixture.claims.claim("default", "data", never), {
    message: `persistentvolumeclaims "data" not found; add the PersistentVolumeClaim to the manifests of 'podwright run'`,
  });
  assert.deepEqual(fixture.claims.missing(fixture.present), ["default/data"]);
  assert.deepEqual(fixture.claims.missing([]), []);
});

test("a claim waits for its PersistentVolume, and keeps it if a better one is added", async () => {
  const fixture = await RunClaimsScene.started();
  const selecting = dataClaim.replace("spec: {", "spec: {selector: {matchLabels: {kind: disk}}, ");
  await fixture.take(selecting);
  const { status } = await fixture.claims.claim("default", "data", never);
  assert.equal(status?.phase, "Pending");
  assert.match(status.conditions?.[0]?.message ?? "", /no persistent volumes available/u);
  await fixture.restart();
  const labelled = disk.replace("name: disk", "name: disk, labels: {kind: disk}");
  await fixture.take(labelled);
  assert.equal(await fixture.path("data"), "/srv/disk");
  await fixture.restart();
  await fixture.take(labelled.replace("name: disk", "name: a").replace("/srv/disk", "/srv/a"));
  assert.equal(await fixture.path("data"), "/srv/disk");
});

test("a bound claim and its volume are immutable, except for the requested size", async () => {
  const fixture = await RunClaimsScene.started();
  await fixture.take(disk, dataClaim);
  assert.deepEqual(fixture.problems(dataClaim.replace("1Gi", "2Gi")), []);
  await fixture.take(dataClaim.replace("1Gi", "2Gi"));
  assert.equal(await fixture.path("data"), "/srv/disk");
  assert.deepEqual(fixture.problems(dataClaim.replace("spec: {", "spec: {volumeName: disk, ")), []);
  const changed = (text: string): string => fixture.problems(dataClaim.replace("spec: {", `spec: {${text}, `))[0] ?? "";
  const immutable = "spec: Forbidden: spec is immutable after creation except resources.requests:";
  const removal = "'podwright volumes --state-dir /state rm default/data' removes the claim with its data";
  const remedy = `give it as it was, or start anew: ${removal}`;
  const manyWriters = fixture.problems(dataClaim.replace("ReadWriteOnce", "ReadWriteMany"))[0] ?? "";
  assert.ok(
    manyWriters.includes(`${immutable} accessModes is ["ReadWriteOnce"] in the kept claim; ${remedy}`),
    manyWriters,
  );
  assert.match(changed("volumeName: other"), /volumeName is "disk" in the kept claim;/u);
  assert.match(changed("storageClassName: fast"), /: storageClassName is not set in the kept claim;/u);
  assert.match(
    fixture.problems(disk.replace("/srv/disk", "/srv/other"))[0] ?? "",
    /spec.persistentvolumesource is immutable after creation; claim default\/data is bound to it/u,
  );
});

test("removing a claim removes its data, and a new claim of its name starts empty", async () => {
  const fixture = await RunClaimsScene.started();
  await fixture.take(dataClaim);
  await fixture.files.write("/state/volumes/default/data/file", "old", 0o644);
  assert.deepEqual(await fixture.claims.remove("default", "data", asked), {
    ...{ namespace: "default", name: "data" },
    left: undefined,
  });
  assert.deepEqual(await fixture.files.list("/state/volumes"), []);
  await fixture.restart();
  assert.deepEqual(fixture.claims.views(), []);
  await fixture.take(dataClaim);
  assert.deepEqual(await fixture.files.list("/state/volumes/default/data"), []);
});

test("a claim that a pod refers to is not removed, and an unknown one is an error", async () => {
  const fixture = await RunClaimsScene.started();
  await fixture.take(dataClaim);
  fixture.present = [using("data")];
  const stop = rejection(
    /podwright stop --state-dir \/state default\/web/u,
    /claim default\/data is used by default\/web/u,
  );
  await assert.rejects(fixture.claims.remove("default", "data", asked), stop);
  assert.deepEqual(
    fixture.claims.views().map(({ usedBy }) => usedBy.map(({ name }) => name)),
    [["web"]],
  );
  await assert.rejects(
    fixture.claims.remove("default", "none", asked),
    rejection(/lists/u, /claim default\/none not found/u),
  );
});

test("while its data is removed, pods see a claim as terminating, and nothing waits for the removal", async () => {
  const fixture = await RunClaimsScene.started();
  await fixture.take(dataClaim, dataClaim.replace("name: data", "name: other"));
  const removal = Promise.withResolvers<void>();
  const removeTree = fixture.files.removeTree.bind(fixture.files);
  fixture.files.removeTree = async (path) => {
    await removal.promise;
    await removeTree(path);
  };
  const removed = fixture.claims.remove("default", "data", asked);
  assert.equal(await fixture.path("other"), "/state/volumes/default/other");
  const { metadata } = await fixture.claims.claim("default", "data", never);
  assert.ok(metadata.deletionTimestamp);
  assert.match(fixture.problems(dataClaim)[0] ?? "", /is being removed; try again/u);
  await assert.rejects(fixture.claims.remove("default", "data", asked), /claim default\/data not found/u);
  removal.resolve();
  await removed;
  await fixture.take(dataClaim);
  assert.deepEqual(await fixture.files.list("/state/volumes/default/data"), []);
});

test("nothing of a claim is removed while its directory has a mount", async () => {
  const fixture = await RunClaimsScene.started();
  fixture.files.knowMounts((path) => (path === "/state/volumes/default/data" ? path : undefined));
  await fixture.take(dataClaim);
  await fixture.files.write("/state/volumes/default/data/file", "kept", 0o644);
  const busy = rejection(/unmount/u, /something is mounted in \/state\/volumes\/default\/data/u);
  await assert.rejects(fixture.claims.remove("default", "data", asked), busy);
  assert.equal(fixture.claims.views().length, 1);
  assert.ok(await fixture.files.stat("/state/volumes/default/data/file"));
});

test("a PersistentVolume's data remains when its claim is removed, and the volume must be given again", async () => {
  const fixture = await RunClaimsScene.started();
  await fixture.files.makeDirectory("/srv/disk", 0o755);
  await fixture.files.write("/srv/disk/file", "kept", 0o644);
  await fixture.take(disk, dataClaim);
  assert.equal((await fixture.claims.remove("default", "data", asked)).left, "/srv/disk");
  assert.ok(await fixture.files.stat("/srv/disk/file"));
  await fixture.take(dataClaim);
  assert.equal(await fixture.path("data"), "/state/volumes/default/data");
});

test("an ephemeral volume's claim is created for its pod and removed with it", async () => {
  const fixture = await RunClaimsScene.started();
  const web = pod("web", { ephemeral: template });
  fixture.present = [web];
  const claim = await fixture.claims.claim("default", "web-scratch", never);
  assert.equal(claim.metadata.ownerReferences?.[0]?.uid, "uid-web");
  assert.equal(await fixture.path("web-scratch"), "/state/volumes/default/web-scratch");
  assert.deepEqual(fixture.claims.views()[0]?.owner, "web");
  const known = Promise.withResolvers<void>();
  const end = new AbortController();
  const running = fixture.claims.run(known.promise, end.signal);
  const gone = async (): Promise<void> => {
    fixture.claims.podGone();
    await fixture.clock.advance(1);
  };
  fixture.present = [];
  await gone();
  assert.equal(fixture.claims.views().length, 1, "nobody knows yet which pods there are");
  fixture.present = [web];
  known.resolve();
  await gone();
  assert.equal(fixture.claims.views().length, 1);
  fixture.present = [];
  await gone();
  assert.deepEqual(fixture.claims.views(), []);
  end.abort();
  await running;
  assert.equal(await fixture.files.stat("/state/volumes/default/web-scratch"), undefined);
});

test("an ephemeral volume's claim whose pod was removed while podwright was down is removed, others stay", async () => {
  const fixture = await RunClaimsScene.started();
  fixture.present = [pod("web", { ephemeral: template }), pod("db", { ephemeral: template })];
  await fixture.take(dataClaim);
  for (const name of ["web-scratch", "db-scratch"]) await fixture.claims.claim("default", name, never);
  fixture.present = fixture.present.slice(1);
  await fixture.restart();
  await fixture.claims.removeOrphans();
  assert.deepEqual(
    fixture.claims.views().map(({ name }) => name),
    ["data", "db-scratch"],
  );
});

test("a document cannot give the claim of a pod's ephemeral volume", async () => {
  const fixture = await RunClaimsScene.started();
  fixture.present = [pod("web", { ephemeral: template })];
  await fixture.claims.claim("default", "web-scratch", never);
  const [problem = ""] = fixture.problems(dataClaim.replace("name: data", "name: web-scratch"));
  assert.match(problem, /belongs to a pod's volume/u);
});

test("volumes and classes that no claim needs are removed with the last pod", async () => {
  const fixture = await RunClaimsScene.started();
  const storageClass =
    "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: disks}, provisioner: kubernetes.io/no-provisioner}";
  await fixture.take(storageClass, disk, disk.replace("name: disk", "name: spare"), dataClaim);
  await fixture.claims.forgetUnused();
  const kept = (await fixture.files.list("/state/claims")).map(({ name }) => name.replace(/_[0-9a-f]{16}/u, ""));
  assert.deepEqual(kept.toSorted(), ["persistentvolume_default_disk.json", "persistentvolumeclaim_default_data.json"]);
});

test("a bound claim's directory that has vanished is not made again, but that of a claim given anew is", async () => {
  const fixture = await RunClaimsScene.started();
  await fixture.take(dataClaim);
  await fixture.files.removeTree("/state/volumes/default");
  for (const restart of [false, true]) {
    if (restart) await fixture.restart();
    await fixture.take(dataClaim);
    assert.equal(await fixture.path("data"), "/state/volumes/default/data");
    assert.equal(await fixture.files.stat("/state/volumes/default"), undefined);
  }
  await fixture.claims.remove("default", "data", asked);
  await fixture.take(dataClaim);
  assert.equal((await fixture.files.stat("/state/volumes/default/data"))?.type, "directory");
});

test("a volume stays beyond the last pod while a claim of its class waits, so that the claim gets no directory", async () => {
  const fixture = await RunClaimsScene.started();
  const ofClass = (document: string): string => document.replace("spec: {", "spec: {storageClassName: fast, ");
  const plain = disk.replace("name: disk", "name: plain");
  await fixture.take(ofClass(disk).replace("ReadWriteOnce", "ReadOnlyMany"), plain, ofClass(dataClaim));
  await fixture.claims.forgetUnused();
  await fixture.restart();
  assert.deepEqual(
    fixture.claims.freeVolumes().map(({ storageClass }) => storageClass),
    ["fast"],
  );
  const [view] = fixture.claims.views();
  assert.equal(view?.phase, "Pending");
  assert.match(view.message, /storage class "fast" has volumes: volume "disk": incompatible accessMode/u);
  assert.equal(await fixture.files.stat("/state/volumes/default/data"), undefined);
});

test("volumes without a bound claim are listed with their properties", async () => {
  const fixture = await RunClaimsScene.started();
  const kept = disk.replace("name: disk", "name: kept").replace("spec: {", "spec: {claimRef: {name: later}, ");
  const fast = disk.replace("name: disk", "name: fast").replace("spec: {", "spec: {storageClassName: fast, ");
  await fixture.take(kept, fast, disk, dataClaim);
  const free = { capacity: "1Gi", accessModes: ["ReadWriteOnce"], where: "/srv/disk" };
  assert.deepEqual(fixture.claims.freeVolumes(), [
    { ...free, name: "fast", storageClass: "fast", keptFor: undefined },
    { ...free, name: "kept", storageClass: "", keptFor: "default/later" },
  ]);
});

test("a claim is bound for the pod that uses it, also in the same request", async () => {
  const fixture = await RunClaimsScene.started();
  const bound = (): (string | undefined)[] =>
    fixture.journal.entries.flatMap(({ what, pod: of }) => (what === "ClaimBound" ? [of?.name] : []));
  await fixture.claims.take(
    fixture.checked(dataClaim).map(({ manifest }) => manifest),
    [using("data")],
  );
  assert.deepEqual(bound(), ["web"]);
  fixture.present = [pod("db", { ephemeral: template })];
  await fixture.claims.claim("default", "db-scratch", never);
  await fixture.take(dataClaim.replace("name: data", "name: idle"));
  assert.deepEqual(bound(), ["web", "db", undefined]);
});

test("an unreadable document affects no other claim", async () => {
  const fixture = await RunClaimsScene.started();
  await fixture.take(dataClaim);
  await fixture.files.write("/state/claims/broken.json", "{", 0o600);
  assert.equal((await fixture.restart()).length, 1);
  assert.equal(fixture.claims.views().length, 1);
});

test("a preview shows bindings and pods' waits, and changes nothing", async () => {
  const fixture = await RunClaimsScene.started();
  const pods = [
    using("data"),
    pod("db", { ephemeral: template }),
    pod("lost", { persistentVolumeClaim: { claimName: "no" } }),
  ];
  const given = fixture.checked(disk, dataClaim).map(({ manifest }) => manifest);
  assert.deepEqual(fixture.claims.preview(given, pods), {
    objects: [
      { kind: "PersistentVolume", namespace: "", name: "disk", change: "added" },
      {
        ...{ kind: "PersistentVolumeClaim", namespace: "default", name: "data", change: "added" },
        detail: "on PersistentVolume disk",
      },
      {
        ...{ kind: "PersistentVolumeClaim", namespace: "default", name: "db-scratch", change: "added" },
        detail: "is removed with its pod",
      },
    ],
    waits: [[], [], ["claim default/no does not exist; add the PersistentVolumeClaim to the manifests"]],
  });
  assert.deepEqual(fixture.claims.views(), []);
  assert.deepEqual(await fixture.files.list("/state/claims"), []);
  const naming = fixture
    .checked(dataClaim.replace("spec: {", "spec: {volumeName: disk, "))
    .map(({ manifest }) => manifest);
  assert.deepEqual(fixture.claims.preview(naming, [using("data")]).waits, [
    ['claim default/data is not bound: volume "disk" not found'],
  ]);
});

test("CSI drivers get a kubelet's paths with the first pod or volume that needs one, and their objects", async () => {
  const fixture = await RunClaimsScene.started();
  const inline = pod("inline", { csi: { driver: "d" } });
  const driver = pod("driver", { hostPath: { path: "/var/lib/kubelet/plugins_registry/" } });
  const mounting = pod("mounting", { hostPath: { path: "/var/lib/kubelet/pods" } });
  const volumeMounts = [{ name: "scratch", mountPath: "/p", mountPropagation: "Bidirectional" }];
  mounting.spec.containers.push({ name: "c", volumeMounts });
  const volume = disk.replace(
    "local: {path: /srv/disk}",
    "csi: {driver: d, volumeHandle: one, nodeStageSecretRef: {name: s, namespace: tools}}",
  );
  const given = fixture.checked(volume, dataClaim).map(({ manifest }) => manifest);
  await fixture.claims.prepare([], [using("data"), pod("other", { hostPath: { path: "/var/lib/kubelet/pods" } })]);
  assert.equal(fixture.taken, 0);
  for (const pods of [[inline], [driver], [mounting]]) await fixture.claims.prepare([], pods);
  await fixture.claims.prepare(given, []);
  assert.equal(fixture.taken, 4);
  assert.equal(fixture.journal.messages("KubeletPlaceTaken").length, 1);
  await fixture.claims.take(given, []);
  await fixture.claims.prepare([], [using("data")]);
  assert.equal(fixture.taken, 5);
  assert.deepEqual([...fixture.claims.secrets()], ["tools/s"]);
  assert.deepEqual(
    fixture.claims.views().map(({ where, path }) => [where, path]),
    [["volume one of driver d", undefined]],
  );
  await fixture.take(
    "{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: d}, spec: {attachRequired: false}}",
  );
  assert.equal(fixture.told.at(-1), "d");
  await fixture.restart();
  assert.equal(fixture.told.at(-1), "d");
});
