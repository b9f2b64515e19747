import assert from "node:assert/strict";
import { test } from "node:test";
import type { Container } from "../api/container.ts";
import { validateVolumeDevices } from "./validate-volume-devices.ts";

type Devices = NonNullable<Container["volumeDevices"]>;

const pod = { volumeNames: new Set(["disk", "other", "dir"]), claimNames: new Set(["disk", "other"]) };

function problems(volumeDevices: Devices, volumeMounts: Container["volumeMounts"] = []): string[] {
  const found = validateVolumeDevices({ name: "c", volumeDevices, volumeMounts }, ["spec"], pod);
  return [...found].map(({ path, detail }) => `${path.slice(2).join(".")}: ${detail}`);
}

test("block devices are claims, each once and at a unique path", () => {
  assert.deepEqual(
    problems([
      { name: "disk", devicePath: "/dev/a" },
      { name: "other", devicePath: "/dev/b" },
    ]),
    [],
  );
  const isClaim = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
  assert.deepEqual(problems([{ name: "dir", devicePath: "/dev/a" }]), [`0.name: Invalid value: "dir": ${isClaim}`]);
  assert.deepEqual(problems([{ name: "none", devicePath: "/dev/a" }]), ['0.name: Not found: "none"']);
  assert.deepEqual(
    problems([
      { name: "disk", devicePath: "/dev/a" },
      { name: "disk", devicePath: "/dev/a" },
    ]),
    ['1.name: Invalid value: "disk": must be unique', '1.devicePath: Invalid value: "/dev/a": must be unique'],
  );
  assert.deepEqual(problems([{ name: "disk", devicePath: "/dev/../a" }]), [
    `0.devicePath: Invalid value: "/dev/../a": can not contain backsteps ('..')`,
  ]);
  assert.deepEqual(problems([{ name: "", devicePath: "" }]), [
    "0.name: Required value",
    "0.devicePath: Required value",
  ]);
});

test("a container does not get a volume both as a device and as a file system", () => {
  assert.deepEqual(problems([{ name: "disk", devicePath: "/d" }], [{ name: "disk", mountPath: "/d" }]), [
    '0.name: Invalid value: "disk": must not already exist in volumeMounts',
    '0.devicePath: Invalid value: "/d": must not already exist as a path in volumeMounts',
  ]);
});
