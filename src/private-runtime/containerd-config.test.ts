import assert from "node:assert/strict";
import { test } from "node:test";
import { systemHashing } from "../linux/files/hashing.ts";
import { cniConfig, containerdConfig } from "./containerd-config.ts";
import type { ContainerdSettings } from "./containerd-config.ts";
import { runtimeLayout } from "./layout.ts";

const layout = runtimeLayout('/srv/odd "name"', systemHashing);
const settings: ContainerdSettings = {
  sandboxImage: "podwright.local/pause:1",
  cniPluginDirectory: "/usr/lib/cni",
  runc: "/usr/sbin/runc",
  mayLowerOomScore: false,
};

test("containerd uses only directories and sockets of this layout", () => {
  const config = containerdConfig(layout, settings);
  assert.match(config, /^version = 2$/m);
  assert.ok(config.includes('root = "/srv/odd \\"name\\"/containerd/root"\n'));
  assert.ok(config.includes(`address = "${layout.containerd.socket}"\n`));
  assert.ok(config.includes(`Root = "${layout.containerd.runcRoot}"\n`));
  for (const path of ["/run/containerd", "/var/lib/containerd", "/etc/cni", "/opt/"]) {
    assert.ok(!config.includes(path), path);
  }
});

test("OOM scores are restricted only if the capability to lower them is missing", () => {
  assert.match(containerdConfig(layout, settings), /restrict_oom_score_adj = true/);
  assert.match(containerdConfig(layout, { ...settings, mayLowerOomScore: true }), /restrict_oom_score_adj = false/);
});

test("the pods' network has its own bridge, subnet and address store", () => {
  const config = JSON.parse(cniConfig(layout, { subnet: "10.88.3.0/24", openForwarding: false }));
  assert.equal(config.name, layout.cni.networkName);
  assert.deepEqual(
    config.plugins.map((plugin: { type: string }) => plugin.type),
    ["bridge", "portmap"],
  );
  assert.equal(config.plugins[0].bridge, layout.cni.bridge);
  assert.equal(config.plugins[0].ipam.dataDir, layout.cni.dataDirectory);
  assert.deepEqual(config.plugins[0].ipam.ranges, [[{ subnet: "10.88.3.0/24" }]]);
});

test("the firewall plugin is used if the host drops forwarded packets", () => {
  const config = JSON.parse(cniConfig(layout, { subnet: "10.88.3.0/24", openForwarding: true }));
  assert.deepEqual(
    config.plugins.map((plugin: { type: string }) => plugin.type),
    ["bridge", "firewall", "portmap"],
  );
});
