import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { openContext } from "../../src/cli/context.ts";
import { joinCommand, kubeletDoctor, leaveCommand } from "../../src/cli/join.ts";
import { type MachineContext, openMachine } from "../../src/cli/machine-context.ts";
import type { ServicePlaces } from "../../src/cli/service-units.ts";
import { type OutputStream, Terminal } from "../../src/cli/terminal.ts";
import type { CommandResult } from "../../src/ports/processes.ts";
import { usualWays } from "../../src/sim/runtime-ways.ts";
import { startRuntimeServer, type RuntimeServer } from "../support/runtime-server.ts";

/** A node as kubeadm leaves it, below a directory, with systemd's answers by hand and a runtime that answers. */
class KubeadmNode implements AsyncDisposable {
  readonly directory: string;
  readonly places: ServicePlaces;
  readonly runtime: RuntimeServer;
  readonly calls: string[] = [];
  /** What systemctl says instead of the unit. */
  refusal = "";
  printed = "";

  private constructor(directory: string, runtime: RuntimeServer) {
    this.directory = directory;
    this.runtime = runtime;
    const launcher = "/usr/lib/podwright/bin/podwright";
    this.places = { manifests: "", units: join(directory, "units"), booted: directory, launcher };
  }

  static async open(configuration = ""): Promise<KubeadmNode> {
    const node = new KubeadmNode(await mkdtemp(join(tmpdir(), "podwright-join-")), await startRuntimeServer(usualWays));
    await node.put("flags.env", 'KUBELET_KUBEADM_ARGS="--hostname-override=node1"\n');
    await node.put(
      "manifests/etcd.yaml",
      "apiVersion: v1\nkind: Pod\nmetadata: { name: etcd }\nspec: { containers: [{ name: app, image: etcd }] }\n",
    );
    await node.put(
      "config.yaml",
      `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: ${node.directory}/manifests
containerRuntimeEndpoint: ${node.runtime.wire.endpoint}
enableServer: false
authentication: { webhook: { enabled: false } }
authorization: { mode: AlwaysAllow }
failCgroupV1: false
failSwapOn: false
${configuration}`,
    );
    return node;
  }

  async put(name: string, text: string): Promise<void> {
    const path = join(this.directory, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }

  get dropIn(): string {
    return join(this.places.units, "kubelet.service.d/90-podwright.conf");
  }

  async context(): Promise<MachineContext> {
    const stream: OutputStream = {
      write: (text) => {
        this.printed += String(text);
        return true;
      },
    };
    const run = async (program: string, words: readonly string[]): Promise<CommandResult> => {
      if (words[0] !== "cat") this.calls.push([program, ...words].join(" "));
      const unit = `[Service]
Environment="KUBELET_CONFIG_ARGS=--config=${this.directory}/config.yaml"
EnvironmentFile=-${this.directory}/flags.env
EnvironmentFile=-/nonexistent/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS --root-dir=${this.directory}/kubelet $KUBELET_EXTRA_ARGS
`;
      const refusal = words[0] === "cat" ? this.refusal : "";
      const exitCode = refusal === "" ? 0 : 1;
      return { exitCode, signal: undefined, stdout: words[0] === "cat" ? unit : "", stderr: refusal };
    };
    const stateDir = join(this.directory, "state");
    const machine = openMachine(await openContext(new Terminal(stream, stream, {}), { stateDir }));
    return { ...machine, processes: { ...machine.processes, run } };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.runtime[Symbol.asyncDispose]();
    await rm(this.directory, { recursive: true });
  }
}

test("a kubeadm node is joined with its own unit and flags, and restored", async () => {
  await using node = await KubeadmNode.open();
  const context = await node.context();
  assert.equal(await joinCommand(context, { fromKubeadm: true, dryRun: true }, node.places), 0, node.printed);
  assert.match(node.printed, /would write .*kubelet --config=.* --hostname-override=node1 --root-dir=/u);
  assert.equal(existsSync(node.dropIn), false);
  assert.deepEqual(node.calls, []);
  assert.equal(await joinCommand(context, { fromKubeadm: true }, node.places), 0, node.printed);
  const dropIn = await readFile(node.dropIn, "utf8");
  // The unit's own variables, so that what kubeadm writes there later counts.
  const parameters = `\\$KUBELET_CONFIG_ARGS \\$KUBELET_KUBEADM_ARGS --root-dir=.* \\$KUBELET_EXTRA_ARGS`;
  assert.match(
    dropIn,
    new RegExp(`^ExecStart=\nExecStart=/usr/lib/podwright/bin/podwright kubelet ${parameters}$`, "mu"),
  );
  for (const setting of ["Type=notify", "KillMode=process", "Delegate=yes"]) {
    assert.ok(dropIn.includes(setting), setting);
  }
  assert.deepEqual(node.calls.splice(0), ["systemctl daemon-reload", "systemctl restart kubelet.service"]);
  assert.equal(await leaveCommand(context, node.places), 0);
  assert.equal(existsSync(node.dropIn), false);
  assert.deepEqual(node.calls, ["systemctl daemon-reload", "systemctl restart kubelet.service"]);
  await assert.rejects(leaveCommand(context, node.places), /this node was not joined by podwright/u);
});

test("what podwright would reject prevents the join, with the file and the field", async () => {
  await using node = await KubeadmNode.open("maxPods: -1\n");
  assert.equal(await joinCommand(await node.context(), { fromKubeadm: true }, node.places), 3);
  assert.match(node.printed, /✗ configuration +.*config\.yaml.*maxPods/u);
  assert.equal(existsSync(node.dropIn), false);
  assert.deepEqual(node.calls, []);
});

test("doctor reports in advance what would differ on this node, and changes nothing", async () => {
  await using node = await KubeadmNode.open();
  await node.put(
    "manifests/bad.yaml",
    "apiVersion: v1\nkind: Pod\nmetadata: { name: bad }\nspec: { containers: [] }\n",
  );
  await node.put("kubelet/plugins_registry/csi.example.com-reg.sock", "");
  await node.put("kubelet/device-plugins/gpu.sock", "");
  await node.put("kubelet/device-plugins/kubelet.sock", "");
  assert.equal(await kubeletDoctor(await node.context(), true), 3);
  const { checks } = JSON.parse(node.printed) as { readonly checks: readonly Record<string, string>[] };
  const found = checks.map(({ name, ok, detail }) => `${ok} ${name}: ${detail}`);
  assert.match(found[0] ?? "", /^(?:ok configuration: every field and flag is honoured|warning configuration: )/u);
  const has = (pattern: RegExp): void =>
    assert.ok(
      found.some((line) => pattern.test(line)),
      found.join("\n"),
    );
  has(/^ok runtime: .*cri\.sock/u);
  has(/^failed static pods: .*bad\.yaml/u);
  has(/^ok static pods: 1 manifest is valid/u);
  has(/^warning plugins: csi\.example\.com-reg\.sock is registered/u);
  has(/^warning plugins: gpu\.sock is registered: device plugins/u);
  assert.equal(found.filter((line) => line.includes("kubelet.sock")).length, 0);
});

test("a machine without a kubelet is distinguished from one with unreadable units or files", async () => {
  await using node = await KubeadmNode.open();
  const context = await node.context();
  node.refusal = "No files found for kubelet.service.\n";
  await assert.rejects(kubeletDoctor(context, false), /this machine has no kubelet\.service/u);
  node.refusal = "Failed to connect to bus: Host is down\n";
  for (const ask of [kubeletDoctor(context, false), joinCommand(context, { fromKubeadm: true }, node.places)]) {
    await assert.rejects(ask, /^PodwrightError: systemctl cat kubelet\.service: Failed to connect to bus/u);
  }
  node.refusal = "";
  await rm(join(node.directory, "flags.env"));
  await mkdir(join(node.directory, "flags.env"));
  await assert.rejects(kubeletDoctor(context, false), /flags\.env/u);
});
