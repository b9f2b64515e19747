import assert from "node:assert/strict";
import { test } from "node:test";
import type { CsiDriver } from "../api/csi-node.ts";
import { VolumeCapability_AccessMode_Mode as modes } from "../ports/gen/csi/v1/csi_pb.js";
import { givesToGroup, groupPolicy, lifecycleProblem, volumeCapability, type VolumeUse } from "./requests.ts";

const use: VolumeUse = {
  mode: "Filesystem",
  accessMode: "ReadWriteOnce",
  fsType: "ext4",
  mountOptions: ["noatime"],
  seLinuxLabel: undefined,
  group: undefined,
};

function modeOf(accessMode: string, knowsSingleWriters: boolean): number | undefined {
  return volumeCapability({ ...use, accessMode }, knowsSingleWriters, modes).accessMode?.mode;
}

test("access modes follow the driver's capabilities", () => {
  const all = ["ReadWriteOnce", "ReadWriteOncePod", "ReadOnlyMany", "ReadWriteMany", "Other"];
  assert.deepEqual(
    all.map((mode) => modeOf(mode, true)),
    [7, 6, 3, 5, 0],
  );
  assert.deepEqual(
    all.map((mode) => modeOf(mode, false)),
    [1, 1, 3, 5, 0],
  );
});

test("a file system is sent with its flags, and with its group if the driver supports it", () => {
  assert.deepEqual(volumeCapability(use, true, modes).accessType, {
    case: "mount",
    value: { fsType: "ext4", mountFlags: ["noatime"] },
  });
  assert.deepEqual(volumeCapability({ ...use, group: 2000 }, true, modes).accessType, {
    case: "mount",
    value: { fsType: "ext4", mountFlags: ["noatime"], volumeMountGroup: "2000" },
  });
  assert.deepEqual(volumeCapability({ ...use, mode: "Block" }, true, modes).accessType, { case: "block", value: {} });
});

test("a SELinux label is the last mount option, in quotes for its commas", () => {
  const { accessType } = volumeCapability({ ...use, seLinuxLabel: "u:r:t:s0:c1,c2" }, true, modes);
  assert.deepEqual(accessType, {
    case: "mount",
    value: { fsType: "ext4", mountFlags: ["noatime", 'context="u:r:t:s0:c1,c2"'] },
  });
});

function driver(spec: CsiDriver["spec"]): Pick<CsiDriver, "spec"> {
  return { spec };
}

test("a driver supports the volume modes of its CSIDriver, and without one only claims", () => {
  assert.equal(lifecycleProblem("d", undefined, "Persistent"), undefined);
  assert.equal(
    lifecycleProblem("d", undefined, "Ephemeral"),
    'volume mode "Ephemeral" not supported by driver d (no CSIDriver object)',
  );
  const persistent = driver({ volumeLifecycleModes: ["Persistent"] });
  assert.equal(lifecycleProblem("d", persistent, "Persistent"), undefined);
  assert.equal(
    lifecycleProblem("d", persistent, "Ephemeral"),
    'volume mode "Ephemeral" not supported by driver d (only supports ["Persistent"])',
  );
});

test("the driver's policy decides who applies the pod's group to a volume", () => {
  const question = { fsGroup: 2000, readOnly: false, fsType: "ext4", accessModes: ["ReadWriteOnce"] };
  const standard = groupPolicy(undefined);
  assert.equal(standard, "ReadWriteOnceWithFSType");
  assert.equal(givesToGroup(question, standard), true);
  assert.equal(givesToGroup({ ...question, accessModes: ["ReadWriteOncePod"] }, standard), true);
  assert.equal(givesToGroup({ ...question, accessModes: undefined }, standard), true, "an inline volume");
  assert.equal(givesToGroup({ ...question, accessModes: ["ReadWriteMany"] }, standard), false);
  assert.equal(givesToGroup({ ...question, fsType: "" }, standard), false);
  assert.equal(givesToGroup({ ...question, fsType: "", accessModes: ["ReadWriteMany"] }, "File"), true);
  assert.equal(givesToGroup(question, "None"), false);
  for (const policy of [standard, "File"]) {
    assert.equal(givesToGroup({ ...question, readOnly: true }, policy), false);
    assert.equal(givesToGroup({ ...question, fsGroup: undefined }, policy), false);
  }
});
