import assert from "node:assert/strict";
import { test } from "node:test";
import { PodwrightError } from "../base/errors.ts";
import { checkSysctlPatterns, sysctlAllowlist, sysctlProblem } from "./sysctl-allowlist.ts";

const problem = (name: string, unsafe: readonly string[] = [], spec = {}, kernel = "6.8.0-45-generic") =>
  sysctlProblem(sysctlAllowlist(kernel, unsafe), {
    containers: [],
    securityContext: { sysctls: [{ name, value: "1" }] },
    ...spec,
  });

test("twelve sysctls are safe, if the kernel has namespaces for them", () => {
  assert.equal(sysctlAllowlist("6.8.0", []).names.size, 12);
  assert.equal(problem("net.ipv4.tcp_rmem"), undefined);
  assert.equal(problem("net/ipv4/tcp_rmem"), undefined);
  assert.match(problem("net.ipv4.tcp_rmem", [], {}, "4.14.1") ?? "", /"net\.ipv4\.tcp_rmem" not allowlisted/u);
  assert.equal(problem("net.ipv4.tcp_syncookies", [], {}, "unreadable"), undefined);
  assert.equal(sysctlAllowlist("3.10.0-957.el7", []).names.size, 5);
});

test("other sysctls are forbidden unless the configuration allows them by name or prefix", () => {
  assert.equal(
    problem("kernel.msgmax"),
    'forbidden sysctl: "kernel.msgmax" not allowlisted (only podwright kubelet allows it, by allowedUnsafeSysctls of its KubeletConfiguration)',
  );
  assert.equal(problem("kernel.msgmax", ["kernel.msg*"]), undefined);
  const node =
    "it applies to the whole node, not to a pod: set it in the node's /etc/sysctl.d, or by a privileged DaemonSet or init container";
  for (const name of ["vm.max_map_count", "fs.file-max", "kernel.pid_max"]) {
    assert.equal(problem(name), `forbidden sysctl: "${name}" not allowlisted (${node})`, "no setting allows it");
  }
  assert.equal(problem("net.core.somaxconn", ["net/core/somaxconn"]), undefined);
  assert.match(problem("net.core.somaxconn2", ["net.core.somaxconn"]) ?? "", /not allowlisted/u);
  assert.equal(problem("net.ipv4.conf.eth0/1.rp_filter", ["net.ipv4.conf.*"]), undefined);
});

test("a sysctl of a namespace that the pod shares with the node is forbidden", () => {
  assert.equal(
    problem("net.ipv4.tcp_syncookies", [], { hostNetwork: true }),
    'forbidden sysctl: "net.ipv4.tcp_syncookies" not allowed with host Net enabled',
  );
  assert.match(problem("kernel.msgmax", ["kernel.msg*"], { hostIPC: true }) ?? "", /not allowed with host IPC/u);
  assert.match(problem("kernel.shm_next_id", ["kernel.shm*"], { hostIPC: true }) ?? "", /not allowed with host IPC/u);
  assert.equal(problem("kernel.msgmax", ["kernel.msg*"], { hostNetwork: true }), undefined);
});

test("an invalid pattern, or one that matches the node's own sysctls, is a configuration error", () => {
  assert.deepEqual(checkSysctlPatterns(["kernel.shm*", "fs.mqueue.*", "net.*"]), [
    "kernel.shm*",
    "fs.mqueue.*",
    "net.*",
  ]);
  for (const text of ["vm.swappiness", "kernel.*", "*", "net"]) {
    assert.throws(() => checkSysctlPatterns([text]), /not known to be namespaced/u, text);
  }
  for (const text of ["", "Net.x", "net.*.x", "net..x"]) {
    assert.throws(() => checkSysctlPatterns([text]), PodwrightError, text);
  }
});
