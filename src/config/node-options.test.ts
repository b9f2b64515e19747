import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeIpsOf, nodeLabelProblems, nodeNameOf } from "./node-options.ts";

test("the node's name is the override or the hostname, trimmed and in lower case", () => {
  assert.equal(nodeNameOf(undefined, " Host.Example "), "host.example");
  assert.equal(nodeNameOf("Node1", "host"), "node1");
  assert.throws(() => nodeNameOf("  ", "host"), /empty hostname is invalid/);
});

test("--node-ip is an address, one of each family, or the family to detect one of", () => {
  assert.deepEqual(nodeIpsOf(undefined), { given: [], prefersV6: false });
  assert.deepEqual(nodeIpsOf("0.0.0.0"), { given: [], prefersV6: false });
  assert.deepEqual(nodeIpsOf("::"), { given: [], prefersV6: true });
  assert.deepEqual(nodeIpsOf("192.0.2.9"), { given: ["192.0.2.9"], prefersV6: false });
  assert.deepEqual(nodeIpsOf("2001:db8::9,192.0.2.9").given, ["2001:db8::9", "192.0.2.9"]);
  assert.deepEqual(nodeIpsOf(" 192.0.2.9 , 2001:db8::9 ").given, ["192.0.2.9", "2001:db8::9"], "spaces are trimmed");
  assert.deepEqual(nodeIpsOf("192.0.2.9,FD00:0::01").given, ["192.0.2.9", "fd00::1"], "in the usual form");
  assert.deepEqual(nodeIpsOf("0:0::0:0"), { given: [], prefersV6: true });
});

test("a --node-ip that is neither an address nor a dual-stack pair is rejected", () => {
  for (const bad of ["host", "192.0.2.1,192.0.2.2", "192.0.2.1,::", "192.0.2.1,2001:db8::1,192.0.2.2"]) {
    assert.throws(() => nodeIpsOf(bad), { exitCode: 2, message: /bad --node-ip/ }, bad);
  }
});

test("labels of Kubernetes' namespaces are limited to those that a kubelet may set", () => {
  assert.deepEqual(
    nodeLabelProblems({
      "example.com/a": "b",
      "kubernetes.io/arch": "amd64",
      "node.kubernetes.io/x": "1",
      "a.kubelet.kubernetes.io/x": "1",
    }),
    [],
  );
  const [problem] = nodeLabelProblems({ "node-role.kubernetes.io/master": "", "k8s.io/x": "" });
  assert.match(
    problem ?? "",
    /^unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: \[k8s.io\/x node-role/,
  );
  assert.match(nodeLabelProblems({ "a b": "c", d: "e f" }).join("; "), /'a b=c' - .*; invalid node labels: 'd=e f' - /);
});
