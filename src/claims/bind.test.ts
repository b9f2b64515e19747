import assert from "node:assert/strict";
import { test } from "node:test";
import type { ClaimManifest, ClassManifest, VolumeManifest } from "../api/storage-manifest.ts";
import { bindClaim, unboundClaims } from "./bind.ts";
import { boundTo, keptClaim, type KeptClaim, type StorageState } from "./kept-claim.ts";

const nodeLabels = { "kubernetes.io/hostname": "here" };

function claim(spec: Partial<ClaimManifest["spec"]> = {}, name = "data"): KeptClaim {
  const manifest: ClaimManifest = {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } }, ...spec },
  };
  return keptClaim(manifest, `uid-${name}`, "2026-01-31T08:00:00Z");
}

function volume(
  name: string,
  spec: Partial<VolumeManifest["spec"]> = {},
  labels: Record<string, string> = {},
): VolumeManifest {
  const local = { path: `/srv/${name}` };
  const common = { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], local };
  return { apiVersion: "v1", kind: "PersistentVolume", metadata: { name, labels }, spec: { ...common, ...spec } };
}

function byHand(name: string, annotations: Record<string, string> = {}): ClassManifest {
  const provisioner = "kubernetes.io/no-provisioner";
  return { apiVersion: "storage.k8s.io/v1", kind: "StorageClass", metadata: { name, annotations }, provisioner };
}

function state(
  volumes: readonly VolumeManifest[] = [],
  claims: readonly KeptClaim[] = [],
  classes: readonly ClassManifest[] = [],
): StorageState {
  return {
    claims: new Map(claims.map((each) => [`default/${each.metadata.name}`, each])),
    volumes: new Map(volumes.map((each) => [each.metadata.name ?? "", each])),
    drivers: new Map(),
    classes: new Map(classes.map((each) => [each.metadata.name ?? "", each])),
    nodeLabels,
  };
}

/** The volume's name, `directory`, or why there is nothing. */
function outcome(wanted: KeptClaim, known: StorageState): string {
  const binding = bindClaim(wanted, known);
  if (binding.kind === "volume") return binding.name;
  return binding.kind === "none" ? binding.why : "directory";
}

test("a claim without volumes of its class gets a directory", () => {
  assert.equal(outcome(claim(), state()), "directory");
  assert.equal(outcome(claim({ storageClassName: "standard" }), state([volume("classless")])), "directory");
});

test("the smallest matching volume is chosen, among those with the fewest access modes", () => {
  const volumes = [
    volume("tiny", { capacity: { storage: "1Mi" } }),
    volume("large", { capacity: { storage: "5Gi" } }),
    volume("fitting", { capacity: { storage: "1100M" } }),
    volume("shared", { accessModes: ["ReadWriteOnce", "ReadWriteMany"] }),
  ];
  assert.equal(outcome(claim(), state(volumes)), "fitting");
  assert.equal(outcome(claim({ accessModes: ["ReadWriteMany"] }), state(volumes)), "shared");
});

test("class, mode, labels and node must match", () => {
  const elsewhere = {
    required: {
      nodeSelectorTerms: [
        { matchExpressions: [{ key: "kubernetes.io/hostname", operator: "In", values: ["elsewhere"] }] },
      ],
    },
  };
  const volumes = [
    volume("fast", { storageClassName: "fast" }),
    volume("block", { volumeMode: "Block" }),
    volume("far", { nodeAffinity: elsewhere }),
    volume("red", { capacity: { storage: "9Gi" } }, { colour: "red" }),
    volume("blue", { capacity: { storage: "8Gi" } }, { colour: "blue", old: "yes" }),
  ];
  assert.equal(outcome(claim(), state(volumes)), "blue");
  assert.equal(outcome(claim({ storageClassName: "fast" }), state(volumes)), "fast");
  const selected = (selector: ClaimManifest["spec"]["selector"]): string =>
    outcome(claim({ selector }), state(volumes));
  assert.equal(selected({ matchLabels: { colour: "red" } }), "red");
  assert.equal(selected({ matchExpressions: [{ key: "colour", operator: "NotIn", values: ["blue"] }] }), "red");
  assert.equal(selected({ matchExpressions: [{ key: "old", operator: "Exists" }] }), "blue");
  assert.equal(selected({ matchExpressions: [{ key: "old", operator: "DoesNotExist" }] }), "red");
});

test("a claim that cannot get a directory waits for a volume, with upstream's message", () => {
  const none = "no persistent volumes available for this claim and";
  assert.equal(outcome(claim({ storageClassName: "" }), state()), `${none} no storage class is set`);
  assert.equal(outcome(claim({ selector: { matchLabels: { a: "b" } } }), state()), `${none} a selector is set`);
  const classes = state([], [], [byHand("disks")]);
  assert.equal(
    outcome(claim({ storageClassName: "disks" }), classes),
    `${none} storage class "disks" has no provisioner`,
  );
});

test("a claim whose class has volumes, none of which matches, waits, and the reason names them", () => {
  const because = (spec: Partial<VolumeManifest["spec"]>, wanted: Partial<ClaimManifest["spec"]> = {}): string => {
    const known = state([volume("disk", { storageClassName: "fast", ...spec }), volume("classless")]);
    return outcome(claim({ storageClassName: "fast", ...wanted }), known);
  };
  const none = "no persistent volumes available for this claim and";
  const has = `${none} storage class "fast" has volumes: volume "disk":`;
  assert.equal(because({}), "disk");
  assert.equal(because({ accessModes: ["ReadOnlyMany"] }), `${has} incompatible accessMode (ReadOnlyMany)`);
  assert.equal(because({ capacity: { storage: "1Mi" } }), `${has} requested PV is too small (1Mi)`);
  assert.equal(because({ volumeMode: "Block" }), `${has} incompatible volumeMode`);
  assert.equal(because({ claimRef: { name: "other" } }), `${has} reserved for a different claim by its claimRef`);
  const elsewhere = { required: { nodeSelectorTerms: [{ matchExpressions: [{ key: "no", operator: "Exists" }] }] } };
  assert.equal(because({ nodeAffinity: elsewhere }), `${has} nodeAffinity does not match this node`);
  assert.equal(
    because({}, { selector: { matchLabels: { a: "b" } } }),
    `${none} a selector is set: volume "disk": labels do not match the selector`,
  );
  assert.equal(because({ storageClassName: "slow" }), "directory");
});

test("the reason of a claim that waits names at most three volumes of its class", () => {
  const taken = boundTo(claim({}, "first"), "a");
  const all = ["e", "d", "c", "b", "a"].map((name) => volume(name, { storageClassName: "fast", accessModes: [] }));
  assert.equal(
    outcome(claim({ storageClassName: "fast" }), state(all, [taken], [byHand("fast")])),
    'no persistent volumes available for this claim and storage class "fast" has no provisioner: ' +
      'volume "a": already bound to a different claim; volume "b": incompatible accessMode (); ' +
      'volume "c": incompatible accessMode (); and 2 more',
  );
});

test("claims without a class have the default class", () => {
  const isDefault = { "storageclass.kubernetes.io/is-default-class": "true" };
  const known = state(
    [volume("plain"), volume("disk", { storageClassName: "disks" })],
    [],
    [byHand("disks", isDefault)],
  );
  assert.equal(outcome(claim(), known), "disk");
  assert.equal(outcome(claim({ storageClassName: "" }), known), "plain");
});

test("a claim that names a volume gets that one or none", () => {
  const named = claim({ volumeName: "disk" });
  const because = (spec: Partial<VolumeManifest["spec"]>): string => outcome(named, state([volume("disk", spec)]));
  assert.equal(because({}), "disk");
  assert.equal(outcome(named, state([volume("other")])), 'volume "disk" not found');
  const cannot = 'Cannot bind to requested volume "disk":';
  assert.equal(because({ capacity: { storage: "1Mi" } }), `${cannot} requested PV is too small`);
  assert.equal(because({ storageClassName: "fast" }), `${cannot} storageClassName does not match`);
  assert.equal(because({ volumeMode: "Block" }), `${cannot} incompatible volumeMode`);
  assert.equal(because({ accessModes: ["ReadOnlyMany"] }), `${cannot} incompatible accessMode`);
  const taken = boundTo(claim({}, "first"), "disk");
  assert.equal(outcome(named, state([volume("disk")], [taken])), 'volume "disk" already bound to a different claim.');
});

test("a volume reserved for a claim is bound to no other, and preferred over better matches", () => {
  const kept = volume("kept", {
    capacity: { storage: "9Gi" },
    claimRef: { name: "data", namespace: "default", uid: "of another cluster" },
  });
  const known = state([kept, volume("fitting")]);
  assert.equal(outcome(claim(), known), "kept");
  assert.equal(outcome(claim({}, "other"), known), "fitting");
});

test("a volume reserved for a claim that it does not fit leads to no directory, whatever its class", () => {
  const because = (spec: Partial<VolumeManifest["spec"]>, wanted: Partial<ClaimManifest["spec"]> = {}): string => {
    const reserved = volume("disk", { claimRef: { name: "data" }, ...spec });
    return outcome(claim(wanted), state([reserved, volume("other", { storageClassName: "other" })]));
  };
  const waits = (why: string): string =>
    `no persistent volumes available for this claim and a volume is reserved for it by claimRef: volume "disk": ${why}; correct the claim or the reserved volume`;
  const large = { resources: { requests: { storage: "2Gi" } } };
  assert.equal(because({}, large), waits("requested PV is too small (1Gi)"));
  assert.equal(
    because({ storageClassName: "fast" }, { ...large, storageClassName: "slow" }),
    waits("requested PV is too small (1Gi)"),
  );
  const elsewhere = { required: { nodeSelectorTerms: [{ matchExpressions: [{ key: "no", operator: "Exists" }] }] } };
  assert.equal(
    because({ nodeAffinity: elsewhere, storageClassName: "fast" }),
    waits("nodeAffinity does not match this node"),
  );
  const fitting = volume("fitting", { capacity: { storage: "2Gi" } });
  assert.equal(
    outcome(claim(large), state([volume("disk", { claimRef: { name: "data" } }), fitting])),
    "fitting",
    "upstream's binder takes another volume, too",
  );
});

test("a claim without a class waits while no free volume without a class fits, with the reason and the remedy", () => {
  const because = (...volumes: readonly VolumeManifest[]): string => outcome(claim(), state(volumes));
  const shared = volume("shared", { accessModes: ["ReadWriteMany"] });
  const taken = boundTo(claim({}, "first"), "taken");
  const waits =
    "no persistent volumes available for this claim and there are free volumes without a storage class: " +
    'volume "shared": incompatible accessMode (ReadWriteMany); ' +
    "correct the claim or the volume, or set a storageClassName that no volume has, for a directory";
  assert.equal(because(shared), waits);
  assert.equal(because(volume("fast", { storageClassName: "fast" })), "directory");
  assert.equal(because(volume("kept", { claimRef: { name: "other" } })), "directory");
  assert.equal(outcome(claim(), state([volume("taken")], [taken])), "directory");
  assert.equal(
    outcome(claim(), state([volume("taken"), shared], [taken])),
    waits,
    "only those that are free are named",
  );
  assert.equal(outcome(claim({ storageClassName: "none" }), state([shared])), "directory");
});

test("a volume is bound to one claim", () => {
  const first = boundTo(claim({}, "first"), "disk");
  assert.equal(outcome(claim(), state([volume("disk")], [first])), "directory");
});

test("claims that name their volumes come first, then the older ones", () => {
  const [a, b, bound] = [claim({}, "a"), claim({ volumeName: "disk" }, "b"), boundTo(claim({}, "c"), "x")];
  assert.deepEqual(
    unboundClaims([a, bound, b]).map(({ metadata }) => metadata.name),
    ["b", "a"],
  );
});
