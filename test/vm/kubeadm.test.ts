import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { kubeconfig } from "../apiserver/kubeconfig.ts";
import { controlPlaneProgram, ControlPlane, noControlPlane, noGoKubelet } from "../support/control-plane.ts";
import type { Kubectl } from "../support/kubectl.ts";
import { until } from "../support/podwright.ts";
import { podwright, prepareLayout, run } from "./machine.ts";

/**
 * A node that the real kubeadm made, with the unit and the drop-in of its packages: podwright takes it over and gives it
 * back while its containers run.
 */
const kubeadm = controlPlaneProgram("kubeadm");
const skip =
  noControlPlane ||
  noGoKubelet ||
  (existsSync(kubeadm) ? false : "PODWRIGHT_CONTROL_PLANE names no directory with kubeadm");

const units = "/usr/lib/systemd/system";
const token = "fedcba.0123456789fedcba";
const directory = "/var/tmp/kubeadm";
const image = "docker.io/library/busybox:latest";
const long = "40m0s"; // under emulation kubeadm's own limits are too short

const files = {
  [`${units}/kubelet.service`]: `[Unit]
Description=kubelet: The Kubernetes Node Agent
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/bin/kubelet
Restart=always
StartLimitInterval=0
RestartSec=10

[Install]
WantedBy=multi-user.target
`,
  [`${units}/kubelet.service.d/10-kubeadm.conf`]: `[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
`,
};

const timeouts = {
  ...{ controlPlaneComponentHealthCheck: long, kubeletHealthCheck: long, kubernetesAPICall: long, discovery: long },
  ...{ etcdAPICall: long, tlsBootstrap: long },
};
const nodeRegistration = { name: "node1", criSocket: "unix:///run/containerd/containerd.sock" };

function write(path: string, ...documents: readonly object[]): string {
  writeFileSync(path, documents.map((each) => JSON.stringify(each)).join("\n---\n"));
  return path;
}

/** What `kubeadm init` leaves in a cluster for the nodes that join it. */
function prepareCluster(endpoint: string, version: string): void {
  const apiVersion = "kubeadm.k8s.io/v1beta4";
  const config = write(
    join(directory, "init.yaml"),
    {
      ...{ apiVersion, kind: "InitConfiguration", nodeRegistration, timeouts, bootstrapTokens: [{ token }] },
      localAPIEndpoint: { advertiseAddress: "192.0.2.2", bindPort: Number(endpoint.split(":")[1]) },
    },
    { apiVersion, kind: "ClusterConfiguration", kubernetesVersion: version, controlPlaneEndpoint: endpoint },
    {
      ...{ apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" },
      failSwapOn: false,
    },
  );
  for (const phase of [["upload-config", "kubeadm"], ["upload-config", "kubelet"], ["bootstrap-token"]]) {
    run(kubeadm, ["init", "phase", ...phase, "--config", config, "--kubeconfig", "/etc/kubernetes/admin.conf"]);
  }
}

function joinCluster(url: string, authority: string): void {
  const apiVersion = "kubeadm.k8s.io/v1beta4";
  const kubeConfigPath = join(directory, "discovery.conf");
  writeFileSync(kubeConfigPath, kubeconfig(url, authority, { token }));
  const discovery = { file: { kubeConfigPath }, tlsBootstrapToken: token };
  const config = write(join(directory, "join.yaml"), {
    ...{ apiVersion, kind: "JoinConfiguration", nodeRegistration, timeouts, discovery },
  });
  console.log(run(kubeadm, ["join", "--config", config, "--ignore-preflight-errors=all", "--v=1"]));
}

/** The program of the kubelet's service. */
function program(): string {
  const pid = run("systemctl", ["show", "--property=MainPID", "--value", "kubelet.service"]);
  return pid === "0" ? "" : readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
}

/** Every container of the workload: its ID and how often it was restarted. */
async function containers(kubectl: Kubectl): Promise<string> {
  const each = "{.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}";
  return kubectl.succeed("get", "pod", "before", "-o", `jsonpath=${each}`);
}

async function ready(kubectl: Kubectl, what: string): Promise<void> {
  const isReady = async (): Promise<boolean> => {
    const status = '{.status.conditions[?(@.type=="Ready")].status}';
    return (await kubectl.run(["get", what, "-o", `jsonpath=${status}`])).stdout.toString("utf8") === "True";
  };
  await until(
    () => `${what} to be ready\n${run("journalctl", ["--unit=kubelet", "--no-pager", "--lines=40"])}`,
    isReady,
  );
}

async function starts(kubectl: Kubectl, name: string): Promise<void> {
  const pod = {
    ...{ apiVersion: "v1", kind: "Pod", metadata: { name } },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [{ name: "c", image, imagePullPolicy: "Never", command: ["sleep", "36000"] }],
    },
  };
  const { code, stderr } = await kubectl.run(["apply", "-f", "-"], Buffer.from(JSON.stringify(pod)));
  assert.equal(code, 0, stderr);
  await ready(kubectl, `pod/${name}`);
}

test("podwright takes over a node of kubeadm and gives it back, with its containers", { skip }, async () => {
  mkdirSync(directory, { recursive: true });
  await prepareLayout("/var/lib/podwright");
  const plane = await ControlPlane.start(join(directory, "plane"));
  after(async () => plane[Symbol.asyncDispose]());
  mkdirSync("/etc/kubernetes/pki", { recursive: true });
  mkdirSync(`${units}/kubelet.service.d`, { recursive: true });
  for (const [path, text] of Object.entries(files)) writeFileSync(path, text);
  for (const name of ["ca.crt", "ca.key"]) copyFileSync(join(directory, "plane", name), `/etc/kubernetes/pki/${name}`);
  copyFileSync(join(directory, "plane/admin.kubeconfig"), "/etc/kubernetes/admin.conf");
  copyFileSync(controlPlaneProgram("kubelet"), "/usr/bin/kubelet");
  run("systemctl", ["daemon-reload"]);
  const kubectl = plane.kubectl();

  prepareCluster(new URL(plane.url).host, run(kubeadm, ["version", "--output=short"]));
  joinCluster(plane.url, plane.authority.certificate);
  await ready(kubectl, "node/node1");
  assert.match(program(), /^\/usr\/bin\/kubelet /u);
  await starts(kubectl, "before");
  const made = await containers(kubectl);

  run(podwright, ["join", "--from-kubeadm"]);
  await until("podwright to be the kubelet", async () => program().includes("podwright"));
  await starts(kubectl, "between");
  await ready(kubectl, "node/node1");
  assert.equal(await containers(kubectl), made);

  run(podwright, ["leave"]);
  await until("the Go kubelet to be back", async () => program().startsWith("/usr/bin/kubelet "));
  await starts(kubectl, "later");
  await ready(kubectl, "node/node1");
  assert.equal(await containers(kubectl), made);
  console.log(`${made} ran on while podwright came and went`);
});
