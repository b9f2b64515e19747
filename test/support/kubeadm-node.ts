import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { openContext } from "../../src/cli/context.ts";
import { type MachineContext, openMachine } from "../../src/cli/machine-context.ts";
import type { ServicePlaces } from "../../src/cli/service-units.ts";
import { type OutputStream, Terminal } from "../../src/cli/terminal.ts";
import type { CommandResult } from "../../src/ports/processes.ts";
import { usualWays } from "../../src/sim/runtime-ways.ts";
import { startRuntimeServer, type RuntimeServer } from "./runtime-server.ts";

/** A node as kubeadm leaves it, below a directory, with systemd's answers by hand and a runtime that answers. */
export class KubeadmNode implements AsyncDisposable {
  readonly directory: string;
  readonly places: ServicePlaces;
  readonly runtime: RuntimeServer;
  readonly calls: string[] = [];
  /** What systemctl says instead of the unit. */
  refusal = "";
  /** Whether the next restart of a service fails. */
  failsOnce = false;
  /** Services that run. */
  readonly active = new Set<string>();
  printed = "";

  private constructor(directory: string, runtime: RuntimeServer) {
    this.directory = directory;
    this.runtime = runtime;
    const launcher = "/usr/lib/podwright/bin/podwright";
    this.places = { manifests: "", units: join(directory, "units"), booted: directory, launcher };
  }

  static async open(configuration = ""): Promise<KubeadmNode> {
    const node = new KubeadmNode(await mkdtemp(join(tmpdir(), "podwright-join-")), await startRuntimeServer(usualWays));
    await node.put("flags.env", 'KUBELET_KUBEADM_ARGS="--hostname-override=node1 --cpu-cfs-quota=true"\n');
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

  get #unit(): string {
    return `[Service]
Environment="KUBELET_CONFIG_ARGS=--config=${this.directory}/config.yaml"
EnvironmentFile=-${this.directory}/flags.env
EnvironmentFile=-/nonexistent/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS --root-dir=${this.directory}/kubelet $KUBELET_EXTRA_ARGS
`;
  }

  async context(): Promise<MachineContext> {
    const stream: OutputStream = {
      write: (text) => {
        this.printed += String(text);
        return true;
      },
    };
    const run = async (program: string, words: readonly string[]): Promise<CommandResult> => {
      const answer = (exitCode: number, stdout = "", stderr = ""): CommandResult => {
        return { exitCode, signal: undefined, stdout, stderr };
      };
      const [command, ...rest] = words;
      if (command === "cat") return this.refusal === "" ? answer(0, this.#unit) : answer(1, "", this.refusal);
      if (command === "is-active") return answer(this.active.has(rest.at(-1) ?? "") ? 0 : 3);
      this.calls.push([program, ...words].join(" "));
      if (command !== "restart" || !this.failsOnce) return answer(0);
      this.failsOnce = false;
      return answer(1, "", "Job for kubelet.service failed.");
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
