import assert from "node:assert/strict";
import { test } from "node:test";
import type { MountPoint } from "../ports/mounts.ts";
import { occupied } from "./place-occupant.ts";

const pods = "/var/lib/kubelet/pods";
const disk = { source: "/dev/vda1", fileSystem: "ext4", options: [], device: "254:1" };
const root: MountPoint = { ...disk, target: "/" };
const data: MountPoint = { ...disk, device: "254:2", root: "/srv", target: "/data" };

function told(...mounts: readonly MountPoint[]): string {
  const { message, remedy } = occupied(pods, "pods", mounts);
  return `${message} -> ${remedy}`;
}

test("a directory of another engine is named with its state directory, and nothing is to be removed", () => {
  const shown: MountPoint = { ...disk, target: pods, root: "/var/lib/other/kubelet/pods" };
  assert.equal(
    told(root, shown),
    `${pods} shows /var/lib/other/kubelet/pods, where volumes may be mounted -> stop the pods of the engine that it ` +
      "belongs to ('podwright ps --state-dir /var/lib/other'; 'podwright run --state-dir /var/lib/other' starts one that " +
      "does not run); remove nothing in it",
  );
  const apart: MountPoint = { ...data, target: pods, root: "/srv/state dir/kubelet/pods" };
  assert.match(told(root, data, apart), /shows \/data\/state dir\/kubelet\/pods.*--state-dir "\/data\/state dir"/u);
});

test("another directory that is mounted there is to be unmounted, and nothing in it to be removed", () => {
  const shown: MountPoint = { ...disk, target: pods, root: "/srv/pods" };
  assert.match(
    told(root, shown),
    /shows \/srv\/pods, where .* -> unmount it once nothing uses it; remove nothing in it$/u,
  );
  const tmpfs: MountPoint = { source: "tmpfs", fileSystem: "tmpfs", options: [], target: pods, device: "0:50" };
  assert.match(told(root, tmpfs), /shows another directory/u);
});

test("what a kubelet has left is not to be removed while volumes are mounted in it", () => {
  assert.match(told(root), /is not empty: it has files of a kubelet -> remove what that kubelet has left/u);
  const volume: MountPoint = { ...data, target: `${pods}/u/volumes/kubernetes.io~csi/pv/mount` };
  assert.match(
    told(root, volume),
    /files of a kubelet, and volumes are mounted in it -> unmount them .* before you remove anything/u,
  );
});
