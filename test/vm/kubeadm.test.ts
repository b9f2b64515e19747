import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { kubeconfig } from "../apiserver/kubeconfig.ts";
import { controlPlaneProgram, ControlPlane, noControlPlane, noGoKubelet } from "../support/control-plane.ts";
import { printedCommands } from "../support/documented-commands.ts";
import type { Kubectl } from "../support/kubectl.ts";
import { politeSleep } from "../support/manifests.ts";
import { until } from "../support/podwright.ts";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import { podwright, prepareLayout, run } from "./machine.ts";

/**
 * The recipes of docs/join.md as they are printed there, with the real kubeadm, kubelet and control plane: podwright takes a
 * node over and gives it back while its containers run, and joins with a token alone.
 */
const kubeadm = controlPlaneProgram("kubeadm");
const skip =
  noControlPlane ||
  noGoKubelet ||
  (existsSync(kubeadm) ? false : "PODWRIGHT_CONTROL_PLANE names no directory with kubeadm");

const units = "/usr/lib/systemd/system";
const token = "fedcba.0123456789fedcba";
const directory = "/var/tmp/kubeadm";
const long = "40m0s"; // under emulation kubeadm's own limits are too short
const document = readFileSync(resolve(import.meta.dirname, "../../docs/join.md"), "utf8");

/** The unit and the drop-in of kubeadm's packages. */
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
const apiVersion = "kubeadm.k8s.io/v1beta4";

function write(path: string, ...documents: readonly object[]): string {
  writeFileSync(path, documents.map((each) => JSON.stringify(each)).join("\n---\n"));
  return path;
}

/** What `kubeadm init` leaves in a cluster for the nodes that join it. */
function prepareCluster(endpoint: string, version: string, administrator: string): void {
  const config = write(
    join(directory, "init.yaml"),
    {
      ...{ apiVersion, kind: "InitConfiguration", nodeRegistration, timeouts, bootstrapTokens: [{ token }] },
      localAPIEndpoint: { advertiseAddress: "192.0.2.2", bindPort: Number(endpoint.split(":")[1]) },
    },
    { apiVersion, kind: "ClusterConfiguration", kubernetesVersion: version, controlPlaneEndpoint: endpoint },
  );
  // With /etc/kubernetes/admin.conf it would wait until that is an administrator's, by another file.
  const flags = ["--config", config, "--kubeconfig", administrator];
  for (const phase of [["upload-config", "kubeadm"], ["upload-config", "kubelet"], ["bootstrap-token"]]) {
    console.log(run(kubeadm, ["init", "phase", ...phase, ...flags]));
  }
}

function joinCluster(kubeConfigPath: string): void {
  const discovery = { file: { kubeConfigPath }, tlsBootstrapToken: token };
  const config = write(join(directory, "join.yaml"), {
    ...{ apiVersion, kind: "JoinConfiguration", nodeRegistration, timeouts, discovery },
  });
  console.log(run(kubeadm, ["join", "--config", config, "--ignore-preflight-errors=all"]));
}

/** The commands in a section of docs/join.md. */
function recipe(heading: string): string[] {
  return printedCommands(document, heading);
}

/** Runs a command as the document has it; prints it with its output. */
function runPrinted(command: string): string {
  const output = run("sh", ["-c", command]);
  console.log(`# ${command}\n${output}`);
  return output;
}

/** The program of the kubelet's service. */
function program(): string {
  const pid = run("systemctl", ["show", "--property=MainPID", "--value", "kubelet.service"]);
  return pid === "0" ? "" : readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
}

/** A kubelet, by its command line and by the version that the node reports. */
interface Kubelet {
  readonly name: string;
  readonly program: RegExp;
  readonly version: RegExp;
}

const go: Kubelet = { name: "the Go kubelet", program: /^\/usr\/bin\/kubelet /u, version: /^v[\d.]+$/u };
const ours: Kubelet = { name: "podwright", program: /^kubelet /u, version: /^v[\d.]+\+podwright\./u };

/** A pod that stays on its node while that is not ready, as under emulation it may be for long. */
function podOf(name: string): object {
  return {
    ...{ apiVersion: "v1", kind: "Pod", metadata: { name } },
    spec: {
      terminationGracePeriodSeconds: 1,
      tolerations: [{ operator: "Exists" }],
      containers: [{ name: "c", image: DEMO_IMAGE, imagePullPolicy: "Never", command: ["sh", "-c", politeSleep] }],
    },
  };
}

/** The cluster's view of the node. */
class Cluster {
  readonly #kubectl: Kubectl;
  readonly #unit: string;

  /** @param unit the service of the kubelet, for failures */
  constructor(kubectl: Kubectl, unit: string) {
    this.#kubectl = kubectl;
    this.#unit = unit;
  }

  async ready(what: string): Promise<void> {
    const status = '{.status.conditions[?(@.type=="Ready")].status}';
    const isReady = async (): Promise<boolean> =>
      (await this.#kubectl.run(["get", what, "-o", `jsonpath=${status}`])).stdout.toString("utf8") === "True";
    const evidence = (): string => {
      const conditions = run("sh", ["-c", `kubectl get ${what} -o 'jsonpath={.status.conditions}' 2>&1 || true`]);
      return `${conditions}\n${run("journalctl", [`--unit=${this.#unit}`, "--no-pager", "--output=cat", "--lines=40"])}`;
    };
    await until(() => `${what} to be ready\n${evidence()}`, isReady);
  }

  async starts(name: string): Promise<void> {
    const { code, stderr } = await this.#kubectl.run(["apply", "-f", "-"], Buffer.from(JSON.stringify(podOf(name))));
    assert.equal(code, 0, stderr);
    await this.ready(`pod/${name}`);
  }

  /** The pods' containers, and how often each was restarted. */
  async containers(...pods: readonly string[]): Promise<readonly string[]> {
    const each =
      "{.metadata.name} {.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}";
    const shown = pods.map(async (name) => this.#kubectl.succeed("get", "pod", name, "-o", `jsonpath=${each}`));
    return Promise.all(shown);
  }

  /** Waits until the kubelet has the node, and starts a pod there; the earlier containers run on. */
  async isTakenBy({ name, program: pattern, version }: Kubelet, pod: string, before: readonly string[]): Promise<void> {
    const began = Date.now();
    await until(name, async () => pattern.test(program()));
    await this.starts(pod);
    await this.ready("node/node1");
    const shown = ["get", "node", "node1", "-o", "jsonpath={.status.nodeInfo.kubeletVersion}"];
    await until(`${name}'s version`, async () => version.test(await this.#kubectl.succeed(...shown)));
    assert.deepEqual(await this.containers("before", "static-node1"), before);
    console.log(`${name} has the node after ${Date.now() - began} ms, with ${before.join(", ")}`);
  }
}

async function prepare(): Promise<ControlPlane> {
  mkdirSync(directory, { recursive: true });
  await prepareLayout("/var/lib/podwright");
  const plane = await ControlPlane.start(join(directory, "plane"));
  mkdirSync(`${units}/kubelet.service.d`, { recursive: true });
  for (const [path, text] of Object.entries(files)) writeFileSync(path, text);
  copyFileSync(controlPlaneProgram("kubelet"), "/usr/bin/kubelet");
  symlinkSync(podwright, "/usr/bin/podwright");
  run("systemctl", ["daemon-reload"]);
  const administrator = join(directory, "plane/admin.kubeconfig");
  process.env["KUBECONFIG"] = administrator;
  prepareCluster(new URL(plane.url).host, run(kubeadm, ["version", "--output=short"]), administrator);
  mkdirSync("/etc/kubernetes/manifests", { recursive: true });
  write("/etc/kubernetes/manifests/static.json", podOf("static"));
  return plane;
}

async function takesOver(plane: ControlPlane): Promise<void> {
  const cluster = new Cluster(plane.kubectl(), "kubelet");
  const credentials = join(directory, "discovery.conf");
  writeFileSync(credentials, kubeconfig(plane.url, plane.authority.certificate, { token }));
  joinCluster(credentials);
  await cluster.ready("node/node1");
  assert.match(program(), go.program);
  await cluster.starts("before");
  await cluster.ready("pod/static-node1");
  const made = await cluster.containers("before", "static-node1");

  const [doctor = ""] = recipe("Joining a cluster");
  const found = runPrinted(doctor);
  assert.match(found, /^✓ cgroup driver +(?:systemd|cgroupfs), as containerd reports/mu);
  assert.match(found, /^✓ static pods +1 manifest is valid, 1 without metadata\.uid/mu);

  const [take = "", look = "", leave = "", replace = ""] = recipe("A node of kubeadm");
  runPrinted(take);
  await cluster.isTakenBy(ours, "joined", made);
  assert.match(runPrinted(look), /^node1 +Ready/mu);
  runPrinted(leave);
  await cluster.isTakenBy(go, "left", made);

  runPrinted(replace);
  await cluster.isTakenBy(ours, "replaced", made);
  assert.match(runPrinted("kubelet --version"), /^Kubernetes v1\.\d+\.\d+$/u);
  rmSync("/usr/bin/kubelet");
  copyFileSync(controlPlaneProgram("kubelet"), "/usr/bin/kubelet");
  run("systemctl", ["restart", "kubelet"]);
  await cluster.isTakenBy(go, "restored", made);
}

async function joinsAlone(plane: ControlPlane): Promise<void> {
  run("systemctl", ["stop", "kubelet"]);
  run("kubectl", ["delete", "node", "node1"]);
  rmSync("/var/lib/kubelet/pki", { recursive: true });
  mkdirSync("/etc/podwright");
  copyFileSync("/var/lib/kubelet/config.yaml", "/etc/podwright/kubelet.yaml");
  const credentials = kubeconfig(plane.url, plane.authority.certificate, { token });
  writeFileSync("/etc/podwright/bootstrap.conf", credentials, { mode: 0o600 });
  const [member = "", ...roles] = recipe("With a bootstrap token").toReversed();
  for (const role of roles) runPrinted(role);
  console.log(`# ${member}`);
  run("systemd-run", ["--unit=member", "sh", "-c", `exec ${member}`]);
  const cluster = new Cluster(plane.kubectl(), "member");
  await cluster.ready(`node/${hostname()}`);
  await cluster.starts("member");
  await cluster.ready(`pod/static-${hostname()}`);
  run("kubectl", ["delete", "pod", "member"]);
  run("systemctl", ["stop", "member"]);

  write("/etc/podwright/kubelet.yaml", {
    ...{ apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" },
    ...{ containerRuntimeEndpoint: nodeRegistration.criSocket, staticPodPath: "/etc/kubernetes/manifests" },
    ...{ authentication: { webhook: { enabled: false } }, authorization: { mode: "AlwaysAllow" } },
  });
  const [enable = ""] = recipe("Any other node");
  runPrinted(enable);
  assert.equal(run("systemctl", ["is-active", "podwright-kubelet"]), "active");
  const ps = (): string => run(podwright, ["ps", "--state-dir", "/var/lib/kubelet/podwright"]);
  await until(
    () => `the static pod to run: ${ps()}`,
    async () => /static-\S+ .*Running/u.test(ps()),
  );
  run(podwright, ["disable", "--kubelet"]);
  assert.equal(run("sh", ["-c", "systemctl is-active podwright-kubelet || true"]), "inactive");
}

test("the recipes of docs/join.md work as they are printed", { skip }, async (context) => {
  await using plane = await prepare();
  const title = "podwright takes over a node of kubeadm and gives it back, with its containers";
  await context.test(title, async () => takesOver(plane));
  const alone = "a node joins with a bootstrap token alone, and a configuration runs as a service";
  await context.test(alone, async () => joinsAlone(plane));
});
