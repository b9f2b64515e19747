import assert from "node:assert/strict";
import { test } from "node:test";
import { environmentIn, expanded, unitCommand } from "./kubelet-unit.ts";

/** The output of `systemctl cat kubelet` on a kubeadm node. */
const kubeadm = `# /lib/systemd/system/kubelet.service
[Unit]
Description=kubelet: The Kubernetes Node Agent

[Service]
ExecStart=/usr/bin/kubelet
Restart=always

[Install]
WantedBy=multi-user.target

# /usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf
# Note: This dropin only works with kubeadm and kubelet v1.11+
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
`;

test("the command in kubeadm's unit and drop-in is read with its variables", () => {
  const command = unitCommand(kubeadm);
  assert.equal(
    command?.parameters,
    "$KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS",
  );
  assert.deepEqual(command?.environmentFiles, [
    { path: "/var/lib/kubelet/kubeadm-flags.env", optional: true },
    { path: "/etc/default/kubelet", optional: true },
  ]);
  const file = environmentIn('# written by kubeadm\nKUBELET_KUBEADM_ARGS="--node-ip=10.0.0.2 --v=2"\n');
  assert.deepEqual(expanded(command?.parameters ?? "", { ...command?.environment, ...file }), [
    "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf",
    "--kubeconfig=/etc/kubernetes/kubelet.conf",
    "--config=/var/lib/kubelet/config.yaml",
    "--node-ip=10.0.0.2",
    "--v=2",
  ]);
});

test("quotes keep blanks, braces expand within a word, and continued lines are joined", () => {
  const command = unitCommand(
    "[Service]\nEnvironment=A=1 'B=two words'\nExecStart=-/k \\\n  --a=${A} '--b=${B}' $B \"--c=x \\\"y\\\"\" ${NONE}z\n",
  );
  assert.deepEqual(expanded(command?.parameters ?? "", command?.environment ?? {}), [
    "--a=1",
    "--b=two words",
    "two",
    "words",
    '--c=x "y"',
    "z",
  ]);
});

test("an empty assignment resets, and a unit without a command starts nothing", () => {
  assert.equal(unitCommand("[Service]\nExecStart=/k --a\nExecStart=\n"), undefined);
  assert.equal(unitCommand("[Unit]\nExecStart=/k --a\n"), undefined);
  const reset = unitCommand(
    "[Service]\nEnvironment=A=1\nEnvironment=\nEnvironmentFile=/a\nEnvironmentFile=\nExecStart=/k\n",
  );
  assert.deepEqual(reset, { parameters: "", environment: {}, environmentFiles: [] });
});

test("escaped quotes, dollar and percent signs are literal, and the program's path may be quoted", () => {
  const command = unitCommand(
    '[Service]\nEnvironment=A=100%%\nExecStart=@-"/opt/a b/k" kubelet --a=$${A} "--b=%%n\\x20\\xc3\\xa9\\t" --c=${A} \\"x\n',
  );
  assert.ok(command?.parameters.startsWith("kubelet --a"));
  assert.deepEqual(expanded(command?.parameters ?? "", command?.environment ?? {}), [
    ...["kubelet", "--a=${A}", "--b=%n \u00e9\t", "--c=100%", '"x'],
  ]);
});
