import assert from "node:assert/strict";
import { test } from "node:test";
import { manifestProblems } from "../../test/support/manifest-problems.ts";

const claim = (spec: string, metadata = "{name: data}"): string[] =>
  manifestProblems(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: ${metadata}, spec: {${spec}}}`);
const volume = (spec: string, metadata = "{name: disk}"): string[] =>
  manifestProblems(`{apiVersion: v1, kind: PersistentVolume, metadata: ${metadata}, spec: {${spec}}}`);
const size = "resources: {requests: {storage: 1Gi}}";
const once = "accessModes: [ReadWriteOnce]";
const rest = `${once}, capacity: {storage: 1Gi}`;

test("claims are checked as the API server does", () => {
  assert.deepEqual(claim(`${once}, ${size}, storageClassName: "", volumeMode: Filesystem, selector: {}`), []);
  assert.deepEqual(claim(""), [
    "spec.accessModes: Required value: at least 1 access mode is required",
    "spec.resources.requests.storage: Required value",
  ]);
  assert.deepEqual(claim(`accessModes: [ReadWriteOncePod, ReadWriteOnce], ${size}`), [
    "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes",
  ]);
  assert.deepEqual(claim(`accessModes: [Some], ${size}`), [
    'spec.accessModes: Unsupported value: "Some": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"',
  ]);
  assert.deepEqual(claim(`${once}, resources: {requests: {storage: 0}}`), [
    "spec.resources.requests.storage: Invalid value: 0: must be greater than zero",
  ]);
  assert.match(claim(`${once}, resources: {requests: {storage: much}}`)[0] ?? "", /storage: Invalid value: "much"/u);
  assert.match(claim(`${once}, ${size}, storageClassName: Fast`)[0] ?? "", /storageClassName: Invalid value: "Fast"/u);
  assert.match(claim(`${once}, ${size}, volumeName: A`)[0] ?? "", /volumeName: Invalid value: "A"/u);
  assert.match(claim(`${once}, ${size}, selector: {matchLabels: {a b: c}}`)[0] ?? "", /matchLabels/u);
  assert.match(claim(`${once}, ${size}`, "{name: a/b}")[0] ?? "", /metadata.name: Invalid value/u);
});

test("unsupported fields of a claim are rejected by name", () => {
  assert.deepEqual(claim(`${once}, ${size}, volumeMode: Block`), [
    "spec.volumeMode: not supported: podwright run does not bind claims to block volumes",
  ]);
  assert.deepEqual(claim(`${once}, ${size}, dataSource: {kind: VolumeSnapshot, name: s}`), [
    "spec.dataSource: not supported: podwright does not populate volumes",
  ]);
});

test("PersistentVolumes are directories of this machine, with one source", () => {
  assert.deepEqual(volume(`${rest}, local: {path: /srv}, persistentVolumeReclaimPolicy: Retain`), []);
  assert.deepEqual(volume(`${rest}, hostPath: {path: /srv, type: DirectoryOrCreate}`), []);
  assert.deepEqual(volume(""), [
    "spec.accessModes: Required value",
    "spec.capacity: Required value",
    "spec: Required value: must specify a volume type",
  ]);
  const affinity = (nodes: string): string[] => volume(`${rest}, local: {path: /srv}, nodeAffinity: ${nodes}`);
  const zone = "{key: zone, operator: In, values: [a]}";
  assert.deepEqual(affinity(`{required: {nodeSelectorTerms: [{matchExpressions: [${zone}]}]}}`), []);
  assert.deepEqual(affinity("{required: {nodeSelectorTerms: []}}"), [
    "spec.nodeAffinity.required.nodeSelectorTerms: Required value: must have at least one node selector term",
  ]);
  assert.deepEqual(affinity("{}"), [
    "spec.nodeAffinity.required: Required value: must specify required node constraints",
  ]);
  assert.deepEqual(affinity("{required: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: Near}]}]}}"), [
    'spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator',
  ]);
  assert.deepEqual(volume(`${rest}, local: {path: /a/../b}`), [
    "spec.local.path: Invalid value: \"/a/../b\": must not contain '..'",
  ]);
  assert.deepEqual(volume(`${rest}, hostPath: {path: /a}, local: {path: /b}`), [
    "spec.local: Forbidden: may not specify more than 1 volume type",
  ]);
  assert.deepEqual(volume(`${rest}, nfs: {server: s, path: /p}`), []);
  assert.deepEqual(volume(`${rest}, nfs: {server: "", path: p}`), [
    "spec.nfs.server: Required value",
    'spec.nfs.path: Invalid value: "p": must be an absolute path',
  ]);
  assert.deepEqual(volume(`${rest}, iscsi: {targetPortal: s}`), [
    "spec.iscsi: not supported: podwright run binds claims to volumes of type hostPath, local, nfs and csi",
  ]);
  assert.deepEqual(volume(`${rest}, local: {path: /srv}`, "{name: disk, namespace: default}"), [
    "metadata.namespace: Forbidden: not allowed on this type",
  ]);
  assert.match(volume(`${once}, capacity: {cpu: 1}, local: {path: /srv}`)[0] ?? "", /supported values: "storage"/u);
  assert.match(volume(`${rest}, local: {path: /srv}, persistentVolumeReclaimPolicy: Drop`)[0] ?? "", /"Drop"/u);
});

test("a StorageClass has no provisioner here, and the remedy is to omit it", () => {
  const storageClass = (fields: string): string[] =>
    manifestProblems(`{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: c}, ${fields}}`);
  assert.deepEqual(storageClass("provisioner: kubernetes.io/no-provisioner, volumeBindingMode: Immediate"), []);
  assert.deepEqual(storageClass("provisioner: ebs.csi.aws.com"), [
    "provisioner: not supported: podwright does not provision volumes, so the provisioner must be kubernetes.io/no-provisioner; omit the StorageClass: its claims are bound to directories",
  ]);
  assert.deepEqual(storageClass('provisioner: ""'), ["provisioner: Required value"]);
  assert.match(storageClass("provisioner: kubernetes.io/no-provisioner, volumeBindingMode: Late")[0] ?? "", /"Late"/u);
});

test("volumes of a CSI driver cannot require attachment here", () => {
  const driver = (spec: string): string[] =>
    manifestProblems(`{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: d}, spec: ${spec}}`);
  assert.deepEqual(driver("{attachRequired: false, podInfoOnMount: true, fsGroupPolicy: File}"), []);
  assert.match(driver("{}")[0] ?? "", /^spec.attachRequired: not supported: podwright run does not attach volumes/u);
  assert.match(driver("{attachRequired: false, tokenRequests: [{audience: a}]}")[0] ?? "", /tokenRequests: not supp/u);
  assert.deepEqual(volume(`${rest}, csi: {driver: d, volumeHandle: one}`), []);
  assert.deepEqual(volume(`${rest}, csi: {driver: d, volumeHandle: ""}`), ["spec.csi.volumeHandle: Required value"]);
});

test("names of CSI drivers are subdomains of at most 63 characters, in any case, in volumes, pods and CSIDrivers", () => {
  const long = `${"a".repeat(62)}.b`;
  const volumeOf = (driver: string): string[] => volume(`${rest}, csi: {driver: "${driver}", volumeHandle: one}`);
  const podOf = (driver: string): string[] =>
    manifestProblems(`{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: c, image: i}],
      volumes: [{name: v, csi: {driver: "${driver}"}}]}}`);
  const objectOf = (driver: string): string[] =>
    manifestProblems(`{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: "${driver}"},
      spec: {attachRequired: false}}`);
  for (const [problems, field] of [
    [volumeOf, "spec.csi.driver"],
    [podOf, "spec.volumes[0].csi.driver"],
    [objectOf, "metadata.name"],
  ] as const) {
    assert.deepEqual(problems("Some.CSI.example.org"), []);
    assert.deepEqual(problems(""), [`${field}: Required value`]);
    assert.deepEqual(problems(long), [`${field}: Invalid value: "${long}": must be no more than 63 characters`]);
    for (const bad of ["../../etc", "a_b", "a/b", ".a"]) {
      assert.equal(problems(bad).length, 1, `${field} ${bad}`);
      assert.match(problems(bad)[0] ?? "", /must consist of/u);
    }
  }
});

test("the templates of ephemeral volumes are checked like claims", () => {
  const pod = (ephemeral: string, name = "web"): string[] =>
    manifestProblems(`{apiVersion: v1, kind: Pod, metadata: {name: ${name}}, spec: {containers: [{name: c, image: i}],
      volumes: [{name: scratch, ephemeral: ${ephemeral}}]}}`);
  const template = "spec.volumes[0].ephemeral.volumeClaimTemplate";
  assert.deepEqual(pod(`{volumeClaimTemplate: {spec: {${once}, ${size}}}}`), []);
  assert.deepEqual(pod("{}"), [`${template}: Required value`]);
  assert.deepEqual(pod(`{volumeClaimTemplate: {spec: {${size}}}}`), [
    `${template}.spec.accessModes: Required value: at least 1 access mode is required`,
  ]);
  assert.match(pod(`{volumeClaimTemplate: {spec: {${once}, ${size}, acessModes: []}}}`)[0] ?? "", /acessModes/u);
  const long = "a".repeat(248);
  assert.match(pod(`{volumeClaimTemplate: {spec: {${once}, ${size}}}}`, long).join("\n"), /PVC name/u);
});

test("a claim must be named", () => {
  const text = `{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: c, image: i}],
    volumes: [{name: data, persistentVolumeClaim: {claimName: ""}}]}}`;
  assert.deepEqual(manifestProblems(text), ["spec.volumes[0].persistentVolumeClaim.claimName: Required value"]);
});
