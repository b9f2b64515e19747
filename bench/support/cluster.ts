import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { PodStatus } from "../../src/api/status.ts";
import { eachOf } from "../../src/base/side-by-side.ts";
import { connectCri } from "../../src/cri/client.ts";
import { systemClock } from "../../src/linux/processes/clock.ts";
import { systemHashing } from "../../src/linux/files/hashing.ts";
import type { Cri } from "../../src/ports/cri.ts";
import { systemMounts } from "../../src/linux/files/mounts.ts";
import { type RuntimeLayout, runtimeLayout } from "../../src/private-runtime/layout.ts";
import { TestApiServer } from "../../test/apiserver/server.ts";
import { freePort } from "../../test/support/free-port.ts";
import { machine } from "../../test/support/machine.ts";
import { removeDirectories, removeLogs } from "../../test/support/traces.ts";
import { forkBareClient } from "./bare-process.ts";
import { onInterruption } from "./interruption.ts";
import { podManifest } from "./node.ts";
import type { BenchOptions } from "./options.ts";
import { type BenchRuntime, type StartRuntime, startPrivateContainerd } from "./bench-runtime.ts";
import { startPodwright, startProgram } from "./programs.ts";
import { processUsage, resetPeak, type Usage } from "./usage.ts";

const nodeName = "bench-node";
const limitMs = 180_000;
/** A loaded machine takes more than a second for each pod. */
const limitPerPodMs = 3_000;
const sandboxesAtOnce = 10;
const removalLimitMs = 30_000;

/** A pod of the API server, as far as the bench reads it. */
interface SeenPod {
  readonly status?: PodStatus;
}

/** The measured agent: podwright, a bare client (bare-burst.ts), or another kubelet. */
export type Agent = "podwright" | "bare" | { readonly kubelet: string };

/** The agent's environment. */
interface Beside {
  readonly server: TestApiServer;
  readonly layout: RuntimeLayout;
  readonly runtime: BenchRuntime;
}

/**
 * A cluster of one node to measure: the API server for tests in this process, a runtime (by default a private
 * containerd), and a kubelet in its own process: podwright's, or with `kubelet` any other with the same flags, such as
 * Kubernetes' own.
 */
export class BenchCluster implements AsyncDisposable {
  readonly server: TestApiServer;
  readonly layout: RuntimeLayout;
  readonly cri: Cri & Disposable;
  readonly #runtime: BenchRuntime;
  readonly #startKubelet: () => Promise<ChildProcess>;
  #kubelet: ChildProcess;
  /** The kubelet removes unknown pods, such as the floor's. */
  readonly #jealous: boolean;
  /** Of all created pods. */
  readonly #uids = new Set<string>();
  readonly #interruption = onInterruption(() => this.#abandon());
  #end: Promise<void> | undefined;

  private constructor(
    { server, layout, runtime }: Beside,
    startAgent: () => Promise<ChildProcess>,
    kubelet: ChildProcess,
    jealous: boolean,
  ) {
    this.server = server;
    this.layout = layout;
    this.cri = connectCri(runtime.endpoint, systemClock);
    this.#runtime = runtime;
    this.#startKubelet = startAgent;
    this.#kubelet = kubelet;
    this.#jealous = jealous;
  }

  static async start(
    options: BenchOptions,
    agent: Agent,
    startRuntime: StartRuntime = startPrivateContainerd,
  ): Promise<BenchCluster> {
    const server = await TestApiServer.start();
    const layout = runtimeLayout(await mkdtemp(join(tmpdir(), "podwright-bench-")), systemHashing);
    const beside = { server, layout, runtime: await startRuntime(layout, options) };
    const startAgent = async (): Promise<ChildProcess> =>
      agent === "bare" ? await startBare(beside) : await startKubelet(beside, options, agent);
    const cluster = new BenchCluster(beside, startAgent, await startAgent(), typeof agent === "object");
    try {
      const isReady = (node: unknown): boolean => hasCondition(node as SeenPod | undefined, "Ready");
      await server.admin.until("nodes", nodeName, isReady, 60_000);
      return cluster;
    } catch (error) {
      const log = await readFile(join(layout.stateDirectory, "kubelet.log"), "utf8");
      await cluster[Symbol.asyncDispose]();
      throw new Error(`the node did not become ready:\n${log.slice(-4000)}`, { cause: error });
    }
  }

  get pid(): number {
    return this.#kubelet.pid ?? 0;
  }

  /**
   * Runs the work while the floor's pods exist. podwright ignores them, because they lack kubelet labels; other
   * kubelets are stopped.
   */
  async besideFloor<T>(work: () => Promise<T>): Promise<T> {
    if (!this.#jealous) return await work();
    process.kill(this.pid, "SIGSTOP");
    try {
      return await work();
    } finally {
      process.kill(this.pid, "SIGCONT");
    }
  }

  /** Writes a kubeconfig for a node. */
  async kubeconfigOf(node: string): Promise<string> {
    return await writeKubeconfig(this.server, this.layout, node);
  }

  async usage(): Promise<Usage> {
    return await processUsage(this.pid);
  }

  /** Kills the kubelet by SIGKILL and restarts it. */
  async restartKubelet(): Promise<void> {
    const ended = once(this.#kubelet, "exit");
    this.#kubelet.kill("SIGKILL");
    await ended;
    this.#kubelet = await this.#startKubelet();
  }

  /** Resets the peak of the agent's memory. */
  async resetPeak(): Promise<void> {
    await resetPeak(this.pid);
  }

  /**
   * Creates pods that are bound to the node. As in a real cluster they have a service account token, so that the
   * kubelet mounts a volume, requests a token and watches a ConfigMap for each; the floor has nothing of that.
   */
  create(names: readonly string[], spec: object = {}): void {
    for (const name of names) {
      const plain = podManifest(name);
      const { metadata } = this.server.admin.create({
        ...plain,
        metadata: { name, namespace: "default" },
        spec: { ...plain.spec, terminationGracePeriodSeconds: 30, nodeName, ...spec },
      } as unknown as Parameters<TestApiServer["admin"]["create"]>[0]);
      if (metadata.uid !== undefined) this.#uids.add(metadata.uid);
    }
  }

  delete(names: readonly string[]): void {
    for (const name of names) this.server.admin.delete("pods", `default/${name}`);
  }

  /**
   * When (`performance.now()`) each pod of the API server first satisfied the condition.
   * @param holds gets undefined when there is no such pod
   */
  async times(names: readonly string[], holds: (pod: SeenPod | undefined) => boolean): Promise<number[]> {
    const waiting = new Set(names);
    const times: number[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const look = (): void => {
      for (const name of waiting) {
        if (!holds(this.server.admin.find("pods", `default/${name}`) as SeenPod | undefined)) continue;
        waiting.delete(name);
        times.push(performance.now());
      }
      if (waiting.size === 0) resolve();
    };
    const end = this.server.registry.store.subscribe(look);
    look();
    const patienceMs = limitMs + names.length * limitPerPodMs;
    const late = sleep(patienceMs, "late", { ref: false });
    try {
      if ((await Promise.race([promise, late])) === "late") {
        throw new Error(`waited ${patienceMs / 1000} s for pods ${[...waiting].join(", ")}`);
      }
    } finally {
      end();
    }
    return times;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#end !== undefined) return await this.#end;
    const left = this.server.admin.list("pods").map(({ metadata }) => metadata.name ?? "");
    if (this.#isRunning) {
      this.delete(left);
      await this.times(left, (pod) => pod === undefined);
    }
    await (this.#end ??= this.#remove("SIGTERM"));
  }

  /** Without waiting for pods: their ends take their grace periods, and the measurement may still be creating some. */
  async #abandon(): Promise<void> {
    await (this.#end ??= this.#remove("SIGKILL"));
  }

  get #isRunning(): boolean {
    return this.#kubelet.exitCode === null && this.#kubelet.signalCode === null;
  }

  /** Those that a killed kubelet was just starting cannot be removed at once. */
  async #removeSandboxes(): Promise<void> {
    const { runtime } = this.cri;
    const lastMs = performance.now() + removalLimitMs;
    for (;;) {
      const { items } = await runtime.listPodSandbox({});
      if (items.length === 0) return;
      const isLast = performance.now() > lastMs;
      await eachOf(items, sandboxesAtOnce, async ({ id: podSandboxId }) => {
        try {
          await runtime.stopPodSandbox({ podSandboxId });
          await runtime.removePodSandbox({ podSandboxId });
        } catch (error) {
          if (isLast) throw error;
        }
      });
      await sleep(100);
    }
  }

  async #remove(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    if (this.#isRunning) {
      const ended = once(this.#kubelet, "exit");
      this.#kubelet.kill(signal);
      await ended;
    }
    await this.server[Symbol.asyncDispose]();
    await this.#removeSandboxes();
    this.cri[Symbol.dispose]();
    await this.#runtime.stop();
    // The Go kubelet mounts its root directory onto itself.
    const targets = (await systemMounts.list()).map(({ target }) => target);
    const own = targets.filter((target) => target.startsWith(`${this.layout.stateDirectory}/`));
    for (const target of own.toReversed()) await systemMounts.unmount(target, { lazy: true });
    // A node that ends right after its last pod may not have removed them.
    await removeLogs(this.#uids);
    await removeDirectories(this.layout);
    this.#interruption[Symbol.dispose]();
  }
}

export function hasCondition(object: SeenPod | undefined, type: string): boolean {
  return object?.status?.conditions?.some((one) => one.type === type && one.status === "True") ?? false;
}

async function startKubelet(
  { server, layout, runtime }: Beside,
  options: BenchOptions,
  agent: Exclude<Agent, "bare">,
): Promise<ChildProcess> {
  const path = (name: string): string => join(layout.stateDirectory, name);
  await mkdir(path("manifests.d"), { recursive: true });
  await writeFile(path("kubelet.yaml"), await configuration(runtime.endpoint, layout.cgroupRoot));
  const kubeconfig = await writeKubeconfig(server, layout, nodeName);
  await machine.cgroups.apply(layout.cgroupRoot, {});
  const flags = [
    ...["--config", path("kubelet.yaml"), "--kubeconfig", kubeconfig, "--hostname-override", nodeName],
    ...["--root-dir", layout.kubeletRoot, "--cert-dir", path("pki")],
  ];
  const log = path("kubelet.log");
  if (agent !== "podwright") {
    return await startProgram(agent.kubelet, ["--pod-manifest-path", path("manifests.d"), ...flags], options, log);
  }
  return await startPodwright(["kubelet", "--state-dir", layout.stateDirectory, ...flags], options, log);
}

/** It is not a kubelet, so its Node is created here. */
async function startBare({ server, layout, runtime }: Beside): Promise<ChildProcess> {
  const kubeconfig = await writeKubeconfig(server, layout, nodeName);
  const child = await forkBareClient(layout, "bare-burst", [
    kubeconfig,
    nodeName,
    runtime.endpoint,
    layout.stateDirectory,
    layout.cgroupRoot,
  ]);
  await once(child, "message");
  server.admin.create({ apiVersion: "v1", kind: "Node", metadata: { name: nodeName } });
  const conditions = [{ type: "Ready", status: "True" }];
  server.admin.patch("nodes", nodeName, { status: { conditions } }, { subresource: "status" });
  return child;
}

async function writeKubeconfig(server: TestApiServer, layout: RuntimeLayout, node: string): Promise<string> {
  const path = join(layout.stateDirectory, `kubeconfig-${node}`);
  const credentials = server.credentials(`system:node:${node}`, ["system:nodes"]);
  await writeFile(path, server.kubeconfig(credentials), { mode: 0o600 });
  return path;
}

async function configuration(endpoint: string, cgroupRoot: string): Promise<string> {
  return `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: ${endpoint}
cgroupDriver: cgroupfs
cgroupRoot: ${cgroupRoot}
enforceNodeAllocatable: [pods]
contentType: application/json
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
maxPods: 400
healthzPort: ${await freePort()}
port: ${await freePort()}
authentication: { anonymous: { enabled: false }, webhook: { enabled: false } }
authorization: { mode: AlwaysAllow }
evictionHard: { memory.available: 1Mi }
`;
}
