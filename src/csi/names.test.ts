import assert from "node:assert/strict";
import { test } from "node:test";
import { systemHashing } from "../linux/files/hashing.ts";
import { CsiNames, isDriverName, parseUniqueVolumeName, uniqueVolumeName } from "./names.ts";

const names = new CsiNames(systemHashing, "/var/lib/kubelet", "node1");

test("handles, attachments and paths have upstream's names", () => {
  const handle = "01446302-e91a-11f1-999b-423236085e7c";
  const driver = "hostpath.csi.k8s.io";
  assert.equal(
    names.staged(driver, handle),
    "/var/lib/kubelet/plugins/kubernetes.io/csi/hostpath.csi.k8s.io/" +
      "ce1d42abfa628211b8a4f6e7a28e82c2dcd8505f54047d1695f6cca46424a82f",
  );
  assert.equal(
    names.attachment(driver, handle),
    "csi-8a6ec9de176a0cbd999a342426ef5e81f517be45ca4a24f33d9a0af321c539dd",
  );
  assert.equal(
    names.inlineHandle("d7341703-64bd-4edb-b20f-97d0b9a47c82", "d"),
    "csi-23a03421dc5e18323ec0e6e7530c6fb49084816fd17aaa5e8f195c84bda81f22",
  );
  assert.equal(uniqueVolumeName(driver, "a"), "kubernetes.io/csi/hostpath.csi.k8s.io^a");
  assert.deepEqual(parseUniqueVolumeName(uniqueVolumeName(driver, "a^b/c")), { driver, handle: "a^b/c" });
  for (const other of ["kubernetes.io/fc/d^h", "kubernetes.io/csi/d", "kubernetes.io/csi/../x^h", ""]) {
    assert.equal(parseUniqueVolumeName(other), undefined);
  }
  const blocks = "/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices";
  assert.equal(names.blockStaging("pv1"), `${blocks}/staging/pv1`);
  assert.equal(names.blockPublish("pv1", "u1"), `${blocks}/publish/pv1/u1`);
  assert.equal(names.blockGlobalMap("pv1"), `${blocks}/pv1/dev`);
  assert.equal(names.blockData("pv1"), `${blocks}/pv1/data`);
});

test("drivers get paths below the root directory as configured", () => {
  const linked = new CsiNames(systemHashing, "/var/lib/kubelet", "node1");
  linked.resolve("/data/kubelet");
  assert.equal(linked.toldToDrivers(`${linked.plugin}/x`), "/var/lib/kubelet/plugins/kubernetes.io/csi/x");
  assert.equal(linked.toldToDrivers("/elsewhere"), "/elsewhere");
});

test("a driver's name is a DNS subdomain, and contains no path", () => {
  for (const name of ["a", "hostpath.csi.k8s.io", "A.b-c.D"]) assert.ok(isDriverName(name), name);
  for (const name of ["", ".", "..", "a/b", "../x", "a..b", "-a", "a_b", "a".repeat(64), "a\u0000"]) {
    assert.ok(!isDriverName(name), name);
  }
});
