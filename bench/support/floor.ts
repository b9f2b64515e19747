import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { eachOf } from "../../src/base/side-by-side.ts";
import { openCgroups } from "../../src/linux/cgroups/cgroups.ts";
import { systemClock } from "../../src/linux/processes/clock.ts";
import type { Cgroups } from "../../src/ports/cgroups.ts";
import type { Cri } from "../../src/ports/cri.ts";
import {
  ContainerEventType,
  NamespaceMode,
  type PodSandboxConfigSchema,
  SecurityProfile_ProfileType as ProfileType,
} from "../../src/ports/gen/runtime/v1/api_pb.js";
import type { MessageInit } from "../../src/ports/message-init.ts";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import type { RuntimeLayout } from "../../src/private-runtime/layout.ts";
import { defaultMaskedPaths, defaultReadonlyPaths } from "../../src/runtime/config/security-context.ts";
import { floorNamespace, idleCommand } from "./node.ts";

type SandboxConfig = MessageInit<typeof PodSandboxConfigSchema>;

/** A pod of the floor: the inputs of its calls. */
export interface FloorPod {
  readonly name: string;
  readonly directory: string;
  readonly config: SandboxConfig;
  sandboxId: string;
  containerId: string;
}

const stopsAtOnce = 4;
const deadPerPod = 25;
const settleMs = 300;

/**
 * A bare client of the runtime: podwright's calls for a pod of one container, with equivalent requests, and nothing
 * else. It decides, observes and stores nothing. Its sandboxes have no kubelet labels, so that podwright, which shares
 * the runtime, ignores them.
 */
export class Floor {
  readonly #cri: Cri;
  readonly #layout: RuntimeLayout;
  readonly #cgroups: Cgroups;

  private constructor(cri: Cri, layout: RuntimeLayout, cgroups: Cgroups) {
    this.#cri = cri;
    this.#layout = layout;
    this.#cgroups = cgroups;
  }

  static async open({ cri, layout }: { readonly cri: Cri; readonly layout: RuntimeLayout }): Promise<Floor> {
    return new Floor(cri, layout, await openCgroups(systemClock));
  }

  /**
   * Creates the files and cgroups that the requests name, before the clock starts, because a floor consists of calls
   * only.
   */
  async prepare(names: readonly string[]): Promise<FloorPod[]> {
    return await Promise.all(
      names.map(async (name) => {
        const directory = join(this.#layout.stateDirectory, "floor", name);
        for (const container of ["app", "init"]) await mkdir(join(directory, container), { recursive: true });
        await writeFile(join(directory, "hosts"), "127.0.0.1 localhost\n");
        await writeFile(join(directory, "termination-log"), "", { mode: 0o666 });
        await this.#cgroups.apply(this.#cgroup(name), { cpuShares: 2 });
        const config = sandboxConfig(name, directory, this.#cgroup(name));
        return { name, directory, config, sandboxId: "", containerId: "" };
      }),
    );
  }

  /** RunPodSandbox, CreateContainer, StartContainer. */
  async start(pod: FloorPod): Promise<void> {
    pod.sandboxId = (await this.#cri.runtime.runPodSandbox({ config: pod.config })).podSandboxId;
    await this.startContainer(pod, 0);
  }

  /** The second half of {@link start}: the pod's container, or its next instance. */
  async startContainer(pod: FloorPod, attempt: number): Promise<void> {
    pod.containerId = await this.#createContainer(pod, containerConfig(pod, attempt));
    await this.#cri.runtime.startContainer({ containerId: pod.containerId });
  }

  /**
   * {@link start} of a pod with an init container that ends at once.
   * @param ended resolves when the container of that id has ended
   */
  async startWithInit(pod: FloorPod, ended: (containerId: string) => Promise<void>): Promise<void> {
    const { runtime } = this.#cri;
    pod.sandboxId = (await runtime.runPodSandbox({ config: pod.config })).podSandboxId;
    const containerId = await this.#createContainer(pod, containerConfig(pod, 0, init));
    const end = ended(containerId);
    await runtime.startContainer({ containerId });
    await end;
    await this.startContainer(pod, 0);
  }

  /** Starts all with limited concurrency, in order; calls back as each runs. */
  async startAll(
    pods: readonly FloorPod[],
    atOnce: number,
    onRunning: (pod: FloorPod) => void,
    start = (pod: FloorPod): Promise<void> => this.start(pod),
  ): Promise<void> {
    await eachOf(pods, atOnce, async (pod) => {
      await start(pod);
      onRunning(pod);
    });
  }

  /** StopContainer and StopPodSandbox, after which a kubelet may report the pod as gone; calls back after each. */
  async stopAll(pods: readonly FloorPod[], onStopped: () => void): Promise<void> {
    await eachOf(pods, stopsAtOnce, async ({ containerId, sandboxId }) => {
      await this.#cri.runtime.stopContainer({ containerId, timeout: 30n });
      await this.#cri.runtime.stopPodSandbox({ podSandboxId: sandboxId });
      onStopped();
    });
  }

  /**
   * Creates exited containers, {@link deadPerPod} in each pod, whose sandboxes are stopped. A runtime event contains
   * all containers of its pod: thousands in one pod would distort the measurement.
   */
  async bury(count: number): Promise<FloorPod[]> {
    const graves = await this.prepare(Array.from({ length: Math.ceil(count / deadPerPod) }, (_, at) => `grave-${at}`));
    await eachOf(graves.entries(), 2, async ([index, pod]) => {
      pod.sandboxId = (await this.#cri.runtime.runPodSandbox({ config: pod.config })).podSandboxId;
      for (let attempt = 0; attempt < Math.min(deadPerPod, count - index * deadPerPod); attempt++) {
        const containerId = await this.#createContainer(pod, containerConfig(pod, attempt, init));
        await this.#cri.runtime.startContainer({ containerId });
      }
      // A sandbox whose last container is just exiting may not be stoppable.
      await sleep(settleMs);
      await this.#cri.runtime.stopPodSandbox({ podSandboxId: pod.sandboxId });
    });
    return graves;
  }

  async remove(pods: readonly FloorPod[]): Promise<void> {
    await eachOf(pods, stopsAtOnce, async ({ name, sandboxId }) => {
      await this.#cri.runtime.stopPodSandbox({ podSandboxId: sandboxId });
      await this.#cri.runtime.removePodSandbox({ podSandboxId: sandboxId });
      await this.#cgroups.remove(this.#cgroup(name));
    });
  }

  async #createContainer(pod: FloorPod, config: ReturnType<typeof containerConfig>): Promise<string> {
    const request = { podSandboxId: pod.sandboxId, config, sandboxConfig: pod.config };
    return (await this.#cri.runtime.createContainer(request)).containerId;
  }

  #cgroup(name: string): string {
    return `${this.#layout.cgroupRoot}/floor/${name}`;
  }
}

const namespaceOptions = { network: NamespaceMode.POD, pid: NamespaceMode.CONTAINER, ipc: NamespaceMode.POD };

const app = { name: "app", command: idleCommand } as const;
const init = { name: "init", command: ["/bin/true"] } as const;

/** A sandbox's configuration. The directory has the logs of its containers. */
export function sandboxConfig(name: string, directory: string, cgroupParent: string): SandboxConfig {
  return {
    metadata: { name, namespace: floorNamespace, uid: name, attempt: 0 },
    hostname: name,
    logDirectory: directory,
    dnsConfig: { servers: ["127.0.0.1"], searches: [], options: [] },
    linux: {
      cgroupParent,
      securityContext: { namespaceOptions, seccomp: { profileType: ProfileType.RuntimeDefault } },
      resources: { cpuShares: 2n },
    },
  };
}

/** A container's configuration; the directory has the files `hosts` and `termination-log`. */
export function containerConfig(
  { directory }: Pick<FloorPod, "directory">,
  attempt: number,
  { name, command }: { readonly name: string; readonly command: readonly string[] } = app,
) {
  return {
    metadata: { name, attempt },
    image: { image: DEMO_IMAGE },
    command: [...command],
    mounts: [
      { containerPath: "/etc/hosts", hostPath: join(directory, "hosts") },
      { containerPath: "/dev/termination-log", hostPath: join(directory, "termination-log") },
    ],
    logPath: `${name}/${attempt}.log`,
    linux: {
      resources: { cpuShares: 2n, oomScoreAdj: 1000n },
      securityContext: { namespaceOptions, maskedPaths: defaultMaskedPaths, readonlyPaths: defaultReadonlyPaths },
    },
  };
}

/** Calls back for each container whose exit the runtime reports, until the signal aborts. */
export async function watchExits(cri: Cri, signal: AbortSignal, onExit: (containerId: string) => void): Promise<void> {
  try {
    for await (const event of cri.runtime.getContainerEvents({}, { signal })) {
      if (event.containerEventType === ContainerEventType.CONTAINER_STOPPED_EVENT) onExit(event.containerId);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
