import assert from "node:assert/strict";
import { test } from "node:test";
import { normalizeSysctl, sysctlNamespace } from "./sysctls.ts";

test("a name with slashes is the same sysctl as one with dots", () => {
  assert.equal(normalizeSysctl("net/ipv4/ping_group_range"), "net.ipv4.ping_group_range");
  assert.equal(normalizeSysctl("net/ipv4/conf/eth0.1/rp_filter"), "net.ipv4.conf.eth0/1.rp_filter");
  assert.equal(normalizeSysctl("net.ipv4.conf.eth0/1.rp_filter"), "net.ipv4.conf.eth0/1.rp_filter");
  assert.equal(normalizeSysctl(""), "");
});

test("a sysctl belongs to a namespace or to the node", () => {
  assert.equal(sysctlNamespace("kernel.shm_rmid_forced"), "IPC");
  assert.equal(sysctlNamespace("fs.mqueue.msg_max"), "IPC");
  assert.equal(sysctlNamespace("net.core.somaxconn"), "Net");
  for (const name of ["kernel.shm_next_id", "vm.swappiness", "network.x", "net"]) {
    assert.equal(sysctlNamespace(name), undefined, name);
  }
});
