import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { systemMounts } from "../../src/linux/files/mounts.ts";
import { systemProcesses } from "../../src/linux/processes/processes.ts";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import { ensurePrivateRuntime } from "../../src/private-runtime/containerd.ts";
import { preflight, requireReady } from "../../src/private-runtime/preflight/preflight.ts";
import type { Programs } from "../../src/private-runtime/programs.ts";
import { stopPrivateRuntime } from "../../src/private-runtime/stop.ts";
import type { RunningCommand } from "./command.ts";
import { leavingCgroupsToSystemd, nodeCgroupDriver } from "./cgroup-driver.ts";
import { freePort } from "./free-port.ts";
import { machine } from "./machine.ts";
import { patience } from "./patience.ts";
import { Podwright, sleep, until } from "./podwright.ts";
import type { TestRuntime } from "./runtimes.ts";
import { cgroupsOf, journaledUids, tracesOf } from "./traces.ts";

/** A `podwright kubelet` with its own containerd, configuration, cgroup and static pod directory. */
export class KubeletNode {
  readonly podwright: Podwright;
  readonly name: string;
  readonly healthzPort: number;
  readonly apiPort: number;

  private constructor(podwright: Podwright, name: string, healthzPort: number, apiPort: number) {
    this.podwright = podwright;
    this.name = name;
    this.healthzPort = healthzPort;
    this.apiPort = apiPort;
  }

  static async open(name = "node1", runtime?: TestRuntime): Promise<KubeletNode> {
    const node = new KubeletNode(await Podwright.open(runtime), name, await freePort(), await freePort());
    await mkdir(node.podwright.path("manifests.d"));
    const { containerd, cgroupRoot } = node.podwright.layout;
    await node.podwright.manifest(
      "kubelet.yaml",
      `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
# Relative to this file.
staticPodPath: manifests.d
containerRuntimeEndpoint: ${containerd.endpoint}
cgroupRoot: ${cgroupRoot}
failCgroupV1: false
failSwapOn: false
# The machine's tables are not the tests'.
makeIPTablesUtilChains: false
# Machines that run tests may be nearly full.
evictionHard: { memory.available: 1Mi, nodefs.available: "1%" }
imageGCHighThresholdPercent: 100
healthzPort: ${node.healthzPort}
port: ${node.apiPort}
authentication: { anonymous: { enabled: false } }
authorization: { mode: AlwaysAllow }
`,
    );
    return node;
  }

  /** Starts the kubelet; it may not be running yet when this returns. */
  startKubelet(...flags: readonly string[]): RunningCommand {
    return this.podwright.start(["kubelet", ...this.kubeletFlags(), ...flags]);
  }

  /** The flags of this node's kubelet. */
  kubeletFlags(): string[] {
    const { layout } = this.podwright;
    return [
      ...["--config", join(layout.stateDirectory, "kubelet.yaml")],
      ...["--root-dir", layout.kubeletRoot],
      ...["--state-dir", layout.stateDirectory],
      ...["--hostname-override", this.name],
      ...["--cert-dir", join(layout.stateDirectory, "pki")],
    ];
  }

  /** Waits for the kubelet's socket. */
  async answers(): Promise<void> {
    await until("the kubelet to answer", async () => this.podwright.answers(), 60_000);
  }

  /** Starts containerd; the built-in demo image gets the names in recorded manifests. */
  async startContainerd(...imageNames: readonly string[]): Promise<void> {
    const { layout, runtime } = this.podwright;
    await this.startContainerdWith();
    for (const name of imageNames) {
      if (name === DEMO_IMAGE) continue;
      const { exitCode, stderr } = await systemProcesses.run(
        join(runtime.binDirectory, "ctr"),
        ["-a", layout.containerd.socket, "-n", "k8s.io", "images", "tag", DEMO_IMAGE, name],
        { timeoutMs: 20_000 * patience },
      );
      if (exitCode !== 0) throw new Error(`ctr images tag ${name}: ${stderr}`);
    }
  }

  /** Starts containerd with replaced programs. */
  async startContainerdWith(other: Partial<Programs> = {}): Promise<void> {
    const { layout, runtime } = this.podwright;
    const facts = requireReady(await preflight({ ...machine, layout, searchPath: [runtime.binDirectory] }));
    const programs = { ...facts.programs, ...other };
    const containerd =
      nodeCgroupDriver === "systemd"
        ? await leavingCgroupsToSystemd(programs.containerd, this.podwright.path("programs"))
        : programs.containerd;
    await ensurePrivateRuntime(machine, layout, { ...facts, programs: { ...programs, containerd } });
  }

  /** Writes a manifest into staticPodPath, replacing an existing one. */
  async write(name: string, text: string): Promise<void> {
    await writeFile(this.podwright.path(`manifests.d/${name}`), text);
  }

  async remove(name: string): Promise<void> {
    await rm(this.podwright.path(`manifests.d/${name}`));
  }

  async read(name: string): Promise<string> {
    return readFile(this.podwright.path(`manifests.d/${name}`), "utf8");
  }

  /** The kubelet's own HTTP server. */
  async healthz(path: string): Promise<{ readonly status: number; readonly body: string }> {
    const response = await fetch(`http://127.0.0.1:${this.healthzPort}${path}`);
    return { status: response.status, body: await response.text() };
  }

  /** Stops containerd, which must have no pod, and fails when anything is left on the machine. */
  async expectNothingLeft(): Promise<void> {
    const { layout } = this.podwright;
    const uids = await journaledUids(layout);
    const outcome = await stopPrivateRuntime(machine, layout, {
      busybox: "/bin/busybox",
      iptables: "/usr/sbin/iptables",
    });
    if (!outcome.stopped || outcome.leftovers.length > 0) throw new Error(JSON.stringify(outcome));
    await sleep(100);
    // As with the Go kubelet, the root directory stays a shared mount.
    await systemMounts.unmount(layout.kubeletRoot);
    for (const path of await cgroupsOf(layout)) await machine.cgroups.remove(path);
    const traces = await tracesOf(layout, uids);
    if (traces.length > 0) throw new Error(`left on the machine:\n${traces.join("\n")}`);
  }
}

/** Passes a node to the work and cleans up in any case; prints diagnostics of a failure. */
export async function withKubeletNode(work: (node: KubeletNode) => Promise<void>): Promise<void> {
  const node = await KubeletNode.open();
  try {
    await work(node);
  } catch (error) {
    console.error(await node.podwright.evidence());
    throw error;
  } finally {
    await node.podwright.cleanUp();
  }
}
