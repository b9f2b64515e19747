import assert from "node:assert/strict";
import { test } from "node:test";
import { parseVolumeData, volumeDataText } from "./volume-data.ts";

test("data files equal upstream's byte for byte, including the final line break of Go's encoder", () => {
  const claim = {
    driverName: "hostpath.csi.k8s.io",
    volumeHandle: "01446302-e91a-11f1-999b-423236085e7c",
    attachmentId: "csi-8a6ec9de176a0cbd999a342426ef5e81f517be45ca4a24f33d9a0af321c539dd",
    nodeName: "node1",
    specVolumeId: "pvc-ed15e002-32b6-4491-94bd-11c8dd2ff152",
    lifecycleMode: "Persistent" as const,
  };
  const text =
    '{"attachmentID":"csi-8a6ec9de176a0cbd999a342426ef5e81f517be45ca4a24f33d9a0af321c539dd",' +
    '"driverName":"hostpath.csi.k8s.io","nodeName":"node1",' +
    '"specVolID":"pvc-ed15e002-32b6-4491-94bd-11c8dd2ff152",' +
    '"volumeHandle":"01446302-e91a-11f1-999b-423236085e7c","volumeLifecycleMode":"Persistent"}\n';
  assert.equal(volumeDataText(claim), text);
  assert.deepEqual(parseVolumeData(text), { ...claim, seLinuxLabel: undefined });
  assert.equal(
    volumeDataText({ driverName: claim.driverName, volumeHandle: claim.volumeHandle }),
    '{"driverName":"hostpath.csi.k8s.io","volumeHandle":"01446302-e91a-11f1-999b-423236085e7c"}\n',
  );
});

test("the label of a mount is in upstream's place", () => {
  const data = {
    driverName: "d",
    nodeName: "n",
    seLinuxLabel: "u:r:t:s0:c1,c2",
    specVolumeId: "pv",
    volumeHandle: "h",
  };
  const text =
    '{"driverName":"d","nodeName":"n","seLinuxMountContext":"u:r:t:s0:c1,c2","specVolID":"pv","volumeHandle":"h"}\n';
  assert.equal(volumeDataText(data), text);
  assert.equal(parseVolumeData(text)?.seLinuxLabel, data.seLinuxLabel);
});

test("an invalid data file is ignored", () => {
  for (const text of ["", "{", "[]", "null", '{"driverName":"d"}', '{"driverName":"d","volumeHandle":7}']) {
    assert.equal(parseVolumeData(text), undefined, text);
  }
});
