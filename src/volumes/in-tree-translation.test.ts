import assert from "node:assert/strict";
import { test } from "node:test";
import { PersistentVolume } from "../api/persistent-volume.ts";
import { translatedVolume } from "./in-tree-translation.ts";

type Metadata = Partial<PersistentVolume["metadata"]>;

function translated(spec: object, metadata: Metadata = {}): PersistentVolume | undefined {
  return translatedVolume(PersistentVolume.parse({ metadata: { name: "pv", ...metadata }, spec }));
}

const zone = "topology.kubernetes.io/zone";
const claimRef = { namespace: "ns", name: "c" };
const secret = { name: "azure-storage-account-st-secret", namespace: "ns" };
const portworx = { name: "s", namespace: "n" };
const sources: readonly (readonly [what: string, spec: object, csi: object, metadata?: Metadata])[] = [
  [
    "an EBS volume by its URL",
    { awsElasticBlockStore: { volumeID: "aws://us-west-2a/vol-1", fsType: "ext4", partition: 1, readOnly: true } },
    {
      ...{ driver: "ebs.csi.aws.com", volumeHandle: "vol-1", fsType: "ext4", readOnly: true },
      volumeAttributes: { partition: "1" },
    },
  ],
  [
    "an EBS volume by its id",
    { awsElasticBlockStore: { volumeID: "vol-2" } },
    { driver: "ebs.csi.aws.com", volumeHandle: "vol-2", volumeAttributes: { partition: "0" } },
  ],
  [
    "a zonal GCE disk",
    { gcePersistentDisk: { pdName: "d" } },
    {
      ...{ driver: "pd.csi.storage.gke.io", volumeHandle: "projects/UNSPECIFIED/zones/us-a1-b/disks/d" },
      volumeAttributes: { partition: "" },
    },
    { labels: { [zone]: "us-a1-b" } },
  ],
  [
    "a regional GCE disk",
    { gcePersistentDisk: { pdName: "d", partition: 2 } },
    {
      ...{ driver: "pd.csi.storage.gke.io", volumeHandle: "projects/UNSPECIFIED/regions/us-a1/disks/d" },
      volumeAttributes: { partition: "2" },
    },
    { labels: { [zone]: "us-a1-b__us-a1-c" } },
  ],
  [
    "a GCE disk of no known zone",
    { gcePersistentDisk: { pdName: "d" } },
    {
      ...{ driver: "pd.csi.storage.gke.io", volumeHandle: "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d" },
      volumeAttributes: { partition: "" },
    },
  ],
  [
    "a Cinder volume",
    { cinder: { volumeID: "v", fsType: "xfs" } },
    { driver: "cinder.csi.openstack.org", volumeHandle: "v", fsType: "xfs", volumeAttributes: {} },
  ],
  [
    "an Azure disk",
    { azureDisk: { diskName: "d", diskURI: "/subscriptions/d", cachingMode: "None", fsType: "ext4", kind: "managed" } },
    {
      ...{ driver: "disk.csi.azure.com", volumeHandle: "/subscriptions/d", fsType: "ext4" },
      volumeAttributes: { kind: "Managed", cachingmode: "None", fstype: "ext4" },
    },
  ],
  [
    "an Azure file share",
    { claimRef, azureFile: { secretName: secret.name, shareName: "share" } },
    {
      ...{ driver: "file.csi.azure.com", volumeHandle: "rg#st#share#pv#ns" },
      volumeAttributes: { sharename: "share" },
      nodeStageSecretRef: secret,
    },
    { annotations: { "kubernetes.io/azure-file-resource-group": "rg" } },
  ],
  [
    "a vSphere volume",
    { vsphereVolume: { volumePath: "[ds] v.vmdk", fsType: "ext4", storagePolicyName: "gold" } },
    {
      ...{ driver: "csi.vsphere.vmware.com", volumeHandle: "[ds] v.vmdk", fsType: "ext4" },
      volumeAttributes: { storagepolicyname: "gold" },
    },
  ],
  [
    "a Portworx volume",
    { portworxVolume: { volumeID: "v" } },
    {
      ...{ driver: "pxd.portworx.com", volumeHandle: "v", volumeAttributes: {} },
      ...{ nodeStageSecretRef: portworx, nodePublishSecretRef: portworx, nodeExpandSecretRef: portworx },
    },
    { annotations: { "openstorage.io/auth-secret-name": "s", "openstorage.io/auth-secret-namespace": "n" } },
  ],
];
for (const [what, spec, csi, metadata] of sources) {
  test(`${what} is translated to its CSI driver`, () => {
    const volume = translated(spec, metadata);
    const given = Object.entries(volume?.spec.csi ?? {}).filter(([, value]) => value !== undefined);
    assert.deepEqual(Object.fromEntries(given), csi);
    const [source = ""] = Object.keys(spec).filter((key) => key !== "claimRef");
    assert.equal(Object.hasOwn(volume?.spec ?? {}, source), false);
  });
}

test("a volume's zone is that of its driver, from its node affinity or else from its labels", () => {
  const affinity = (key: string, ...values: string[]): object => ({
    required: { nodeSelectorTerms: [{ matchExpressions: [{ key, operator: "In", values }] }] },
  });
  const ebs = { awsElasticBlockStore: { volumeID: "vol-1" } };
  const own = "topology.ebs.csi.aws.com/zone";
  const of = (spec: object, labels: Readonly<Record<string, string>> = {}): unknown => {
    return translated(spec, { labels: { ...labels } })?.spec.nodeAffinity;
  };
  assert.deepEqual(of({ ...ebs, nodeAffinity: affinity(zone, "a") }, { [zone]: "b" }), affinity(own, "a"));
  const beta = "failure-domain.beta.kubernetes.io";
  assert.deepEqual(of({ ...ebs, nodeAffinity: affinity(`${beta}/zone`, "a") }), affinity(own, "a"));
  assert.deepEqual(of(ebs, { [zone]: "b__a" }), affinity(own, "a", "b"));
  assert.equal(of(ebs), undefined);
  const vmware = "topology.csi.vmware.com";
  const labels = { [zone]: "z", "topology.kubernetes.io/region": "r" };
  assert.deepEqual(of({ vsphereVolume: { volumePath: "v" } }, labels), {
    required: {
      nodeSelectorTerms: [
        {
          matchExpressions: [
            { key: `${vmware}/zone`, operator: "In", values: ["z"] },
            { key: `${vmware}/region`, operator: "In", values: ["r"] },
          ],
        },
      ],
    },
  });
});

test("a GCE disk for many writers becomes one for one node, as with its in-tree plugin", () => {
  const modes = (...accessModes: string[]): unknown =>
    translated({ gcePersistentDisk: { pdName: "d" }, accessModes })?.spec.accessModes;
  assert.deepEqual(modes("ReadWriteMany"), ["ReadWriteOnce"]);
  assert.deepEqual(modes("ReadOnlyMany"), ["ReadOnlyMany"]);
  assert.deepEqual(modes("ReadOnlyMany", "ReadWriteOnce"), ["ReadWriteOnce"]);
});

test("a failed translation gives its reason, and other volumes are unaffected", () => {
  const why = (spec: object, metadata: Metadata = {}): string => {
    try {
      translated(spec, metadata);
    } catch (error) {
      return error instanceof Error ? error.message : "";
    }
    return "translated";
  };
  const failed = "failed to translate in-tree pv to CSI:";
  assert.equal(
    why({ awsElasticBlockStore: { volumeID: "aws://a/b" } }),
    `${failed} failed to translate Kubernetes ID to EBS Volume ID invalid format for AWS volume (aws://a/b)`,
  );
  assert.equal(
    why({ azureDisk: { diskURI: "d", kind: "Shared" } }),
    `${failed} kind(Shared) is not supported in csi migration`,
  );
  assert.equal(
    why({ azureFile: { secretName: "s", shareName: "s" } }),
    `${failed} could not find a secret namespace in PersistentVolumeSource or ClaimRef`,
  );
  assert.match(
    why({ gcePersistentDisk: { pdName: "d" } }, { labels: { [zone]: "us-a1-b__eu-b1-c" } }),
    /multiple or no regions/u,
  );
  assert.equal(translated({ csi: { driver: "d", volumeHandle: "h" } }), undefined);
  assert.equal(translated({ nfs: { server: "s", path: "/" } }), undefined);
});
