import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { systemHashing } from "../linux/files/hashing.ts";
import { runtimeLayout } from "./layout.ts";
import type { RuntimeLayout } from "./layout.ts";
import { claimSubnet, releaseSubnet, removeBridge } from "./pod-network.ts";
import { FakeFiles, FakeLocks, FakeProcesses } from "./testing.ts";

interface Machine {
  readonly files: FakeFiles;
  readonly locks: FakeLocks;
  readonly clock: ManualClock;
  readonly network: { addresses(): string[] };
}

function machine(...addresses: string[]): Machine {
  return {
    files: new FakeFiles(),
    locks: new FakeLocks(),
    clock: new ManualClock(),
    network: { addresses: () => addresses },
  };
}

const layout = (path: string): RuntimeLayout => runtimeLayout(path, systemHashing);
const standard = layout("/var/lib/podwright");

test("the subnet is remembered and reused", async () => {
  const deps = machine("192.0.2.2");
  assert.equal(await claimSubnet(deps, standard), "10.88.0.0/24");
  assert.equal(deps.files.text("/var/lib/podwright/cni/subnet"), "10.88.0.0/24\n");
  await deps.files.write("/var/lib/podwright/cni/subnet", "192.168.77.0/24\n", 0o644);
  assert.equal(await claimSubnet(deps, standard), "192.168.77.0/24");
  assert.equal(deps.locks.held.size, 0);
});

test("ranges used by routes, addresses and other state directories are not chosen", async () => {
  const deps = machine("10.88.1.7");
  deps.files
    .put("/proc/net/route", "Iface Destination\ncni0 0000580A 0 1 0 0 0 00FFFFFF 0 0 0\n")
    .put("/run/podwright/subnets/aaaaaaaa", "10.88.2.0/24 /srv/other\n")
    .put("/srv/other/containerd/config.toml");
  assert.equal(await claimSubnet(deps, standard), "10.88.3.0/24");
});

test("a claim whose state directory is gone is ignored", async () => {
  const deps = machine();
  deps.files.put("/run/podwright/subnets/aaaaaaaa", "10.88.0.0/24 /srv/gone\n");
  assert.equal(await claimSubnet(deps, standard), "10.88.0.0/24");
  assert.equal(deps.files.text("/run/podwright/subnets/aaaaaaaa"), undefined);
});

test("a remembered subnet that is used elsewhere by now is replaced, but not under running pods", async () => {
  const deps = machine();
  deps.files
    .put("/var/lib/podwright/cni/subnet", "10.88.0.0/24\n")
    .put("/proc/net/route", "Iface Destination\nvpn0 0000580A 0 1 0 0 0 0000FFFF 0 0 0\n");
  assert.equal(await claimSubnet(deps, standard), "10.89.0.0/24");
  deps.files.put("/var/lib/podwright/cni/subnet", "10.88.0.0/24\n").put("/sys/class/net/podwright0/address");
  assert.equal(await claimSubnet(deps, standard), "10.88.0.0/24");
});

test("an invalid subnet file is replaced", async () => {
  const deps = machine();
  deps.files.put("/var/lib/podwright/cni/subnet", "nonsense");
  assert.equal(await claimSubnet(deps, standard), "10.88.0.0/24");
});

test("another state directory can take a released claim", async () => {
  const deps = machine();
  const [left, right] = [layout("/srv/left"), layout("/srv/right")];
  const subnet = await claimSubnet(deps, left);
  await releaseSubnet(deps, left);
  await deps.files.write(right.cni.subnetFile, subnet, 0o644);
  assert.equal(await claimSubnet(deps, right), subnet);
  assert.notEqual(await claimSubnet(deps, left), subnet);
});

test("the wait for another podwright's choice has a deadline, and names it", async () => {
  const deps = machine();
  deps.locks.foreign.set("any", 43);
  const claim = assert.rejects(
    claimSubnet(deps, standard),
    /another podwright \(pid 43\) holds \/run\/podwright\/locks\/subnets/,
  );
  for (let step = 0; step < 250; step++) await deps.clock.advance(50);
  await claim;
});

test("the bridge is removed only when nothing is connected to it", async () => {
  const files = new FakeFiles().put("/sys/class/net/podwright0/brif/veth1");
  const processes = new FakeProcesses([], () => {
    void files.removeTree("/sys/class/net/podwright0");
    return {};
  });
  assert.equal(await removeBridge({ files, processes }, standard, "/bin/busybox"), false);
  await files.remove("/sys/class/net/podwright0/brif/veth1");
  assert.equal(await removeBridge({ files, processes }, standard, "/bin/busybox"), true);
  assert.deepEqual(processes.commands, [
    "/bin/busybox ip link set dev podwright0 down",
    "/bin/busybox ip link delete dev podwright0",
  ]);
  assert.equal(await removeBridge({ files, processes }, standard, "/bin/busybox"), true);
});
