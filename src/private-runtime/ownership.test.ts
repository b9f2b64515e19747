import assert from "node:assert/strict";
import { test } from "node:test";
import { PodwrightError } from "../base/errors.ts";
import { systemHashing } from "../linux/files/hashing.ts";
import type { ProcessInfo } from "../ports/processes.ts";
import { claimRuntime } from "./ownership.ts";
import type { OwnershipDeps } from "./ownership.ts";
import { FakeFiles, FakeLocks, FakeProcesses, processOf } from "./testing.ts";

const socket = "/run/containerd/containerd.sock";

function machine(
  ...processes: ProcessInfo[]
): OwnershipDeps & { readonly files: FakeFiles; readonly locks: FakeLocks } {
  return {
    files: new FakeFiles().put(socket, "", { inode: 77 }),
    hashing: systemHashing,
    locks: new FakeLocks(),
    processes: new FakeProcesses(processes),
  };
}

test("a runtime without other users is claimed until the claim is released", async () => {
  const deps = machine(processOf(3, "kubectl get pods"));
  {
    using _claim = await claimRuntime(deps, `unix://${socket}`);
    assert.equal(deps.locks.held.size, 1);
  }
  assert.equal(deps.locks.held.size, 0);
});

test("a live kubelet's runtime is rejected with the kubelet's PID and command line, and the lock is released", async () => {
  const deps = machine(processOf(42, "/usr/bin/kubelet --v=2"));
  await assert.rejects(claimRuntime(deps, `unix://${socket}`), (error) => {
    assert.ok(error instanceof PodwrightError);
    assert.equal(error.exitCode, 3);
    assert.match(error.message, /used by a live node agent \(pid 42: \/usr\/bin\/kubelet --v=2\)/);
    assert.ok(error.remedy);
    return true;
  });
  assert.equal(deps.locks.held.size, 0);
});

test("a runtime that another podwright holds is rejected with the PID", async () => {
  const deps = machine(processOf(43, "node podwright run a.yaml"));
  deps.locks.foreign.set("any", 43);
  await assert.rejects(
    claimRuntime(deps, `unix://${socket}`),
    /another podwright \(pid 43: node podwright run a\.yaml\)/,
  );
});

test("two paths of one socket are one runtime", async () => {
  const deps = machine(
    processOf(42, "kubelet --container-runtime-endpoint=unix:///var/run/containerd/containerd.sock"),
  );
  deps.files.link("/var/run", "/run");
  await assert.rejects(claimRuntime(deps, `unix://${socket}`), /pid 42/);
  const own = machine();
  own.files.link("/var/run", "/run");
  using _first = await claimRuntime(own, `unix://${socket}`);
  await assert.rejects(claimRuntime(own, "unix:///var/run/containerd/containerd.sock"), /another podwright/);
});

test("a kubelet in a container that uses another socket with the same path does not matter", async () => {
  const deps = machine(processOf(42, "kubelet"));
  deps.files.put(`/proc/42/root${socket}`, "", { inode: 78 });
  using _claim = await claimRuntime(deps, `unix://${socket}`);
});

test("a kubelet in a container that sees our socket under another path is detected", async () => {
  const deps = machine(processOf(42, "kubelet --container-runtime-endpoint=unix:///host/containerd.sock"));
  deps.files.put("/proc/42/root/host/containerd.sock", "", { inode: 77 });
  await assert.rejects(claimRuntime(deps, `unix://${socket}`), /pid 42/);
});

test("a kubelet on another runtime does not matter, and a future socket can be claimed", async () => {
  const deps = machine(processOf(42, "kubelet --container-runtime-endpoint=unix:///run/crio/crio.sock"));
  using _claim = await claimRuntime(deps, "unix:///run/podwright/containerd/containerd.sock");
});

test("podwright does not detect itself", async () => {
  const deps = machine(processOf(1000, `node podwright run --runtime-endpoint unix://${socket} a.yaml`));
  using _claim = await claimRuntime(deps, `unix://${socket}`);
});
