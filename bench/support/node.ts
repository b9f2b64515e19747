import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { PodManifest } from "../../src/api/pod.ts";
import { EngineClient } from "../../src/cli/engine-client.ts";
import { connectCri } from "../../src/cri/client.ts";
import { systemClock } from "../../src/linux/processes/clock.ts";
import { systemHashing } from "../../src/linux/files/hashing.ts";
import { unixTransport } from "../../src/linux/http/unix-client.ts";
import type { Cri } from "../../src/ports/cri.ts";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import { type RuntimeLayout, runtimeLayout } from "../../src/private-runtime/layout.ts";
import type { PodView } from "../../src/server/local-api.ts";
import { onInterruption } from "./interruption.ts";
import type { BenchOptions } from "./options.ts";
import { startPodwright } from "./programs.ts";
import { processUsage, type Usage } from "./usage.ts";
import { removeDirectories } from "../../test/support/traces.ts";

const startLimitMs = 60_000;
/** The engine waits 2 s for more pods, then stops its containerd. */
const endLimitMs = 60_000;
const goneLimitMs = 120_000;
const pollMs = 50;
/** The namespace of the floor's pods. */
export const floorNamespace = "floor";
/** An engine without pods exits: this pod keeps it running. */
const anchor = "bench-anchor";

/**
 * A node to measure: the real engine in its own process, as `podwright run` starts it, on a private containerd in a
 * temporary directory. The floor uses the same containerd. Disposing of it stops all pods, the engine and containerd,
 * and removes the directory.
 */
export class BenchNode implements AsyncDisposable {
  readonly layout: RuntimeLayout;
  readonly cri: Cri & Disposable;
  readonly engine: EngineClient;
  /** Name and version, e.g. `containerd 2.1.9`. */
  readonly runtime: string;
  readonly #process: ChildProcess;

  private constructor(layout: RuntimeLayout, child: ChildProcess, engine: EngineClient, runtime: string) {
    this.layout = layout;
    this.engine = engine;
    this.runtime = runtime;
    this.#process = child;
    this.cri = connectCri(layout.containerd.endpoint, systemClock);
  }

  /** Starts it and waits until it can run pods. */
  static async start(options: BenchOptions): Promise<BenchNode> {
    const directory = await mkdtemp(join(tmpdir(), "podwright-bench-"));
    const layout = runtimeLayout(directory, systemHashing);
    const child = await startEngine(layout, options);
    const engine = new EngineClient(unixTransport(layout.engineSocket), directory);
    const runtime = await answer(engine, child, join(directory, "engine.log"));
    const node = new BenchNode(layout, child, engine, runtime);
    onInterruption(() => node[Symbol.asyncDispose]());
    try {
      await node.apply([podManifest(anchor)]);
      await node.waitForReady(anchor);
      return node;
    } catch (error) {
      await node[Symbol.asyncDispose]();
      throw error;
    }
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  async usage(): Promise<Usage> {
    return await processUsage(this.pid);
  }

  async apply(pods: readonly PodManifest[]): Promise<void> {
    await this.engine.apply({ pods, configMaps: [], secrets: [] });
  }

  async waitForReady(...names: readonly string[]): Promise<readonly PodView[]> {
    const wanted = new Set(names);
    return await this.#until(`pods ${names.join(", ")} to be ready`, (pods) => {
      const ready = pods.filter((pod) => wanted.has(pod.name) && pod.ready);
      return ready.length === wanted.size ? ready : undefined;
    });
  }

  /** Stops the pods and waits until nothing is left of them. */
  async remove(names: readonly string[]): Promise<void> {
    await Promise.all(names.map((name) => this.engine.stop(name, 0)));
    await this.#until("pods to be gone", (pods) => (pods.some((pod) => names.includes(pod.name)) ? undefined : true));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const child = this.#process;
    if (child.exitCode !== null || child.signalCode !== null) {
      throw new Error(`the engine ended before its time; see ${this.layout.stateDirectory}/engine.log`);
    }
    await this.#removeFloor();
    for (const pod of await this.engine.pods()) await this.engine.stop(pod.name, 0);
    const ended = once(child, "exit").then(() => true);
    if (!(await Promise.race([ended, sleep(endLimitMs, false, { ref: false })]))) {
      throw new Error(`the engine, pid ${this.pid}, does not end; its state is in ${this.layout.stateDirectory}`);
    }
    this.cri[Symbol.dispose]();
    await removeDirectories(this.layout);
  }

  /** Sandboxes of a failed floor: the engine ignores them, and containerd could not be stopped. */
  async #removeFloor(): Promise<void> {
    const { items } = await this.cri.runtime.listPodSandbox({});
    for (const { id, metadata } of items) {
      if (metadata?.namespace !== floorNamespace) continue;
      await this.cri.runtime.stopPodSandbox({ podSandboxId: id });
      await this.cri.runtime.removePodSandbox({ podSandboxId: id });
    }
  }

  async #until<T>(what: string, look: (pods: readonly PodView[]) => T | undefined): Promise<T> {
    const limit = performance.now() + goneLimitMs;
    for (;;) {
      const found = look(await this.engine.pods());
      if (found !== undefined) return found;
      if (performance.now() > limit) throw new Error(`waited ${goneLimitMs / 1000} s for ${what}`);
      await sleep(pollMs);
    }
  }
}

/** A pod of one idle container that exits at once on SIGTERM. */
export function podManifest(name: string): PodManifest {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 0,
      containers: [{ name: "app", image: DEMO_IMAGE, imagePullPolicy: "IfNotPresent", command: [...idleCommand] }],
    },
  };
}

/** An HTTP server, and its readiness probe. */
export const serving = {
  command: ["/bin/sh", "-c", "trap 'exit 0' TERM; touch /tmp/ready; httpd -p 80 -h /tmp; sleep 1000000 & wait"],
  readinessProbe: { httpGet: { path: "/ready", port: 80 }, periodSeconds: 1 },
};

/** The shell is the container's init process, for which the kernel has no default action on SIGTERM. */
export const idleCommand = ["/bin/sh", "-c", "trap 'exit 0' TERM; sleep 1000000 & wait"] as const;

async function startEngine(layout: RuntimeLayout, options: BenchOptions): Promise<ChildProcess> {
  await mkdir(layout.stateDirectory, { recursive: true });
  const args = ["engine", "--state-dir", layout.stateDirectory];
  return await startPodwright(args, options, join(layout.stateDirectory, "engine.log"));
}

/** Waits for the engine's first response; returns its runtime. */
async function answer(engine: EngineClient, child: ChildProcess, logPath: string): Promise<string> {
  const limit = performance.now() + startLimitMs;
  for (;;) {
    try {
      return (await engine.health()).runtime;
    } catch (error) {
      if (child.exitCode === null && performance.now() < limit) {
        await sleep(pollMs);
        continue;
      }
      child.kill("SIGTERM");
      const log = await readFile(logPath, "utf8");
      throw new Error(`the engine did not start:\n${log.slice(-4000)}`, { cause: error });
    }
  }
}
