import assert from "node:assert/strict";
import { test } from "node:test";
import { Volume } from "../api/volume.ts";
import { isTranslated, translatedInline } from "./in-tree-translation.ts";

const ebs = "ebs.csi.aws.com";
const gce = "pd.csi.storage.gke.io";
const azure = "disk.csi.azure.com";
const vsphere = "csi.vsphere.vmware.com";

/** An inline source, the name of its directory, its handle and its access mode. */
const table: readonly (readonly [source: object, name: string, handle: string, access: string])[] = [
  [{ awsElasticBlockStore: { volumeID: "aws://a/vol-1" } }, `${ebs}-vol-1`, "vol-1", "ReadWriteOnce"],
  [
    { gcePersistentDisk: { pdName: "d", readOnly: true } },
    `${gce}-d`,
    "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
    "ReadOnlyMany",
  ],
  [{ azureDisk: { diskName: "d", diskURI: "/s/d" } }, `${azure}-d`, "/s/d", "ReadWriteOnce"],
  [
    { azureFile: { secretName: "azure-storage-account-st-secret", shareName: "share" } },
    "#st#share#data#ns",
    "#st#share#data#ns",
    "ReadWriteMany",
  ],
  [{ cinder: { volumeID: "v", readOnly: true } }, "cinder.csi.openstack.org-v", "v", "ReadWriteOnce"],
  [{ portworxVolume: { volumeID: "v", readOnly: true } }, "pxd.portworx.com-v", "v", "ReadOnlyMany"],
  [
    { vsphereVolume: { volumePath: "[ds] a/../v.vmdk" } },
    `${vsphere}-[ds] a~..~v.vmdk`,
    "[ds] a/../v.vmdk",
    "ReadWriteOnce",
  ],
];
for (const [source, name, handle, access] of table) {
  test(`an inline ${Object.keys(source).join()} is translated to its CSI driver`, () => {
    const volume = Volume.parse({ name: "data", ...source });
    assert.ok(isTranslated(volume));
    const { metadata, spec } = translatedInline(volume, "ns") ?? assert.fail("is not translated");
    assert.deepEqual(
      [metadata.name, spec.csi?.volumeHandle, spec.accessModes, spec.volumeMode],
      [name, handle, [access], "Filesystem"],
    );
    assert.equal(metadata.name.includes("/"), false, "it becomes the name of a directory");
  });
}

test("the secret of an Azure share is in the pod's namespace", () => {
  const volume = Volume.parse({ name: "data", azureFile: { secretName: "s", shareName: "share" } });
  assert.deepEqual(translatedInline(volume, "ns")?.spec.csi?.nodeStageSecretRef, { name: "s", namespace: "ns" });
});

test("invalid volumes give their reason, and others are unaffected", () => {
  const bad = Volume.parse({ name: "data", cinder: { volumeID: 7 } });
  assert.throws(() => translatedInline(bad, "ns"), {
    message: "failed to translate in-tree pv to CSI: cinder of volume data is not valid",
  });
  const shared = Volume.parse({ name: "data", azureDisk: { diskName: "d", diskURI: "u", kind: "Shared" } });
  assert.throws(() => translatedInline(shared, "ns"), /kind\(Shared\) is not supported in csi migration/u);
  for (const source of [{ rbd: {} }, { nfs: { server: "s", path: "/" } }, { emptyDir: {} }]) {
    const volume = Volume.parse({ name: "data", ...source });
    assert.deepEqual([isTranslated(volume), translatedInline(volume, "ns")], [false, undefined]);
  }
});
