import assert from "node:assert/strict";
import { test } from "node:test";
import { systemHashing } from "../linux/files/hashing.ts";
import { DEFAULT_STATE_DIRECTORY, checkedSocketPath, runtimeLayout } from "./layout.ts";
import type { RuntimeLayout } from "./layout.ts";

const layout = (path: string): RuntimeLayout => runtimeLayout(path, systemHashing);

/** Every leaf of a layout. */
function leaves(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(leaves) : [];
}

test("the default state directory has plain names", () => {
  const { containerd, cni, cgroupRoot, engineSocket } = layout(DEFAULT_STATE_DIRECTORY);
  assert.equal(containerd.endpoint, "unix:///run/podwright/containerd/containerd.sock");
  assert.equal(cni.bridge, "podwright0");
  assert.equal(cgroupRoot, "/podwright");
  assert.equal(engineSocket, "/run/podwright/engine.sock");
});

test("two state directories share no path, no interface, no cgroup and no network name", () => {
  const all = ["/var/lib/podwright", "/tmp/a", "/tmp/b"].flatMap((path) => leaves(layout(path)));
  assert.equal(new Set(all).size, all.length);
});

test("a long state directory does not make the sockets longer", () => {
  const { containerd, engineSocket, cni } = layout(`/srv/${"deep/".repeat(60)}state`);
  assert.match(containerd.socket, /^\/run\/podwright\/[0-9a-f]{8}\/containerd\/containerd\.sock$/);
  // containerd listens at this one too.
  assert.ok(`${containerd.socket}.ttrpc`.length < 108);
  assert.ok(engineSocket.length < 108);
  assert.ok(cni.bridge.length <= 15);
});

test("a trailing slash names the same state directory", () => {
  assert.deepEqual(layout("/srv/podwright/"), layout("/srv/podwright"));
});

test("an unusable state directory is rejected with a reason", () => {
  assert.throws(() => layout("relative"), /not an absolute path/);
  assert.throws(() => layout("/"), /is the root directory/);
  assert.throws(() => layout("/srv/../etc"), /not a plain path/);
  assert.throws(() => layout("/srv/a:b"), /overlayfs cannot mount/);
  assert.throws(() => layout("/srv/a\nb"), /overlayfs cannot mount/);
});

test("a socket path that Linux cannot bind is rejected with its length", () => {
  const longest = `/${"s".repeat(106)}`;
  assert.equal(checkedSocketPath(longest), longest);
  assert.throws(() => checkedSocketPath(`${longest}é`), /has 109 bytes; Linux allows 107/);
});
