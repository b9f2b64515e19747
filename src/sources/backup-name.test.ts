import assert from "node:assert/strict";
import { test } from "node:test";
import { isBackupName } from "./backup-name.ts";

test("endings that editors, packages and people give to copies are recognized", () => {
  for (const ending of [
    ...[".bak", ".orig", "~", ".old", ".save", ".swp", ".rpmsave", ".rpmnew", ".dpkg-old", ".dpkg-dist", ".1", ".tmp"],
    ...["-2026-01-02-03-04-05", ".20260102", "_disabled", ".bak.2", " (copy)"],
  ]) {
    assert.equal(isBackupName(`/m/etcd.yaml${ending}`), true, ending);
  }
  for (const name of ["etcd.bak.yaml", "etcd-old.yaml", "etcd_backup2.yml", "etcd.bak", "old.yaml"]) {
    assert.equal(isBackupName(`/m/${name}`), true, name);
  }
  for (const name of [
    "etcd.yaml",
    "kube-apiserver.yml",
    "a.json",
    "pod",
    "threshold.yaml",
    "bakery.yaml",
    "x.manifest",
  ]) {
    assert.equal(isBackupName(`/m/${name}`), false, name);
  }
});
