import { appendFile, writeFile } from "node:fs/promises";
import type { PodStatus } from "../../src/api/status.ts";
import { TestApiServer } from "../apiserver/server.ts";
import type { RunningCommand } from "./command.ts";
import { KubeletNode } from "./kubelet-node.ts";
import { until } from "./podwright.ts";
import type { TestRuntime } from "./runtimes.ts";

/** An API server for tests, and a `podwright kubelet` as its node `node1`. */
export class ClusterNode {
  readonly server: TestApiServer;
  readonly node: KubeletNode;

  constructor(server: TestApiServer, node: KubeletNode) {
    this.server = server;
    this.node = node;
  }

  /** Starts the kubelet; it may not be running yet when this returns. */
  async start(...flags: readonly string[]): Promise<RunningCommand> {
    const credentials = this.server.credentials("system:node:node1", ["system:nodes"]);
    const path = this.node.podwright.path("kubeconfig");
    await writeFile(path, this.server.kubeconfig(credentials), { mode: 0o600 });
    const authority = await this.node.podwright.manifest("ca.crt", this.server.authority.certificate);
    // As kubeadm configures nodes: the cluster's CA authenticates clients, and the API server authorizes them.
    const access = ["--client-ca-file", authority, "--authorization-mode", "Webhook"];
    return this.node.startKubelet("--kubeconfig", path, ...access, ...flags);
  }

  async nodeReady(): Promise<void> {
    await this.server.admin.until(
      "nodes",
      "node1",
      (node) => conditionOf(node as { status?: PodStatus } | undefined, "Ready") === "True",
      30_000,
    );
  }

  /** Waits until the pod of namespace default is Ready at the API server. */
  async ready(name: string): Promise<void> {
    const isReady = (pod: unknown): boolean =>
      conditionOf(pod as { status?: PodStatus } | undefined, "Ready") === "True";
    await this.server.admin.until("pods", `default/${name}`, isReady, 30_000);
  }

  status(name: string): PodStatus {
    return (this.server.admin.get("pods", `default/${name}`) as unknown as { status: PodStatus }).status;
  }

  /** Calls back with the pod's status at every change, until disposed of. */
  onStatus(name: string, listener: (status: PodStatus) => void): Disposable {
    const end = this.server.registry.store.subscribe(() => listener(this.status(name)));
    return { [Symbol.dispose]: end };
  }

  /** Waits until nothing of the pod is left on the node. */
  async gone(name: string): Promise<void> {
    const { podwright } = this.node;
    await until(`pod ${name} to be gone from the node`, async () =>
      (await podwright.pods()).every((pod) => pod.name !== name),
    );
  }
}

function conditionOf(object: { readonly status?: PodStatus } | undefined, type: string): string | undefined {
  return object?.status?.conditions?.find((condition) => condition.type === type)?.status;
}

/**
 * Passes a cluster of one node to the work, with its kubelet running, and cleans up in any case.
 * @param image name for the built-in demo image
 * @param settings additional lines of the kubelet's configuration
 * @param flags additional flags of the kubelet
 * @param runtime default: the runtime under test
 */
export async function withClusterNode(
  work: (cluster: ClusterNode, kubelet: RunningCommand) => Promise<void>,
  image: string,
  settings = "",
  flags: readonly string[] = [],
  runtime?: TestRuntime,
): Promise<void> {
  await using server = await TestApiServer.start();
  const node = await KubeletNode.open("node1", runtime);
  try {
    await node.startContainerd(image);
    await appendFile(node.podwright.path("kubelet.yaml"), settings);
    const cluster = new ClusterNode(server, node);
    const kubelet = await cluster.start(...flags);
    await work(cluster, kubelet).catch((error: unknown) => {
      kubelet.child.kill("SIGKILL");
      throw error;
    });
  } catch (error) {
    console.error(await node.podwright.evidence());
    throw error;
  } finally {
    await node.podwright.cleanUp();
  }
}
