import assert from "node:assert/strict";
import { test } from "node:test";
import type { Container } from "../../api/container.ts";
import { ContainerConfigError } from "./container-config-error.ts";
import type { MountedVolumes } from "./mounted-volumes.ts";
import { volumeDevices } from "./volume-devices.ts";

const container = (...paths: readonly string[]): Container => ({
  name: "c",
  volumeDevices: paths.map((devicePath, index) => ({ name: `v${index}`, devicePath })),
});
const mounted: MountedVolumes = new Map([
  ["v0", { hostPath: "/pods/u/volumeDevices/p/pv0", readOnly: false, own: false }],
  ["v1", { hostPath: "/pods/u/volumeDevices/p/pv1", readOnly: true, own: false }],
]);

test("a container gets its block volumes as devices, which a read-only claim lets it only read", () => {
  assert.deepEqual(volumeDevices(container("/dev/a", "/dev/b"), mounted), [
    { hostPath: "/pods/u/volumeDevices/p/pv0", containerPath: "/dev/a", permissions: "mrw" },
    { hostPath: "/pods/u/volumeDevices/p/pv1", containerPath: "/dev/b", permissions: "r" },
  ]);
  assert.deepEqual(volumeDevices({ name: "c" }, mounted), []);
});

test("a device without its volume, or at a relative path, is an error in upstream's words", () => {
  const message = (of: Container, volumes: MountedVolumes): string => {
    try {
      volumeDevices(of, volumes);
    } catch (error) {
      assert.ok(error instanceof ContainerConfigError);
      return error.message;
    }
    return "no error";
  };
  assert.equal(message(container("/dev/a"), new Map()), 'cannot find volume "v0" to pass into container "c"');
  assert.equal(message(container("dev/a"), mounted), "error DevicePath `dev/a` must be an absolute path");
});
