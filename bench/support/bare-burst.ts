/**
 * `bare-burst.ts KUBECONFIG NODE ENDPOINT DIRECTORY CGROUP`: the floor of bursts, in the same language: the CRI calls,
 * the token volume, the Events and the statuses of each pod of the node, and nothing else. It decides, observes and
 * stores nothing. Notifies its parent when ready; SIGTERM ends it.
 */
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { ApiClient } from "../../src/api-client/client.ts";
import type { ApiObject, Resource } from "../../src/api-client/resource.ts";
import { Semaphore } from "../../src/base/semaphore.ts";
import { connectCri } from "../../src/cri/client.ts";
import { decodeKubeconfig } from "../../src/kube/kubeconfig.ts";
import { openKubeTransport } from "../../src/kube/transport.ts";
import { openCgroups } from "../../src/linux/cgroups/cgroups.ts";
import { systemClock } from "../../src/linux/processes/clock.ts";
import { systemFiles } from "../../src/linux/files/files.ts";
import { systemMounts } from "../../src/linux/files/mounts.ts";
import { systemProcesses } from "../../src/linux/processes/processes.ts";
import { containerConfig, sandboxConfig } from "./floor.ts";

const [kubeconfig = "", node = "", endpoint = "", root = "", cgroupRoot = ""] = process.argv.slice(2);

/** podwright's limits on two cores. */
const [startsAtOnce, stopsAtOnce] = [3, 4];
const limits = {
  requests: { perSecond: 50, burst: 100 },
  events: { perSecond: 50, burst: 100 },
  heartbeatTimeoutMs: 10_000,
};

interface SeenPod extends ApiObject {
  readonly metadata: ApiObject["metadata"] & { readonly uid: string; readonly deletionTimestamp?: string };
}

interface OwnPod {
  readonly name: string;
  readonly uid: string;
  readonly directory: string;
  readonly cgroup: string;
  readonly token: string;
  readonly sandboxId: string;
  readonly containerId: string;
}

function resource<T extends ApiObject>(plural: string, kind: string): Resource<T> {
  return { base: "/api/v1", plural, kind, decode: (value) => value as T };
}

const pods = resource<SeenPod>("pods", "Pod");
const events = resource("events", "Event");
const tokens = resource<ApiObject & { readonly status: { readonly token: string } }>("serviceaccounts", "TokenRequest");

const { signal } = new AbortController();
const namespace = "default";

class BareKubelet {
  readonly #client: ApiClient;
  readonly #cri = connectCri(endpoint, systemClock);
  readonly #starts = new Semaphore(startsAtOnce);
  readonly #stops = new Semaphore(stopsAtOnce);
  readonly #own = new Map<string, Promise<OwnPod>>();
  readonly #ending = new Set<string>();
  readonly #cgroups = openCgroups(systemClock);
  #events = 0;

  constructor(client: ApiClient) {
    this.#client = client;
  }

  /** The runtime may stall if its events are not read. */
  async drain(): Promise<never> {
    for await (const _event of this.#cri.runtime.getContainerEvents({}));
    throw new Error("the runtime ended its events");
  }

  async follow(): Promise<never> {
    const query = { watch: true, fieldSelector: `spec.nodeName=${node}` };
    const stream = await this.#client.watch({ lane: "objects", resource: pods, place: {}, query, signal });
    process.send?.("ready");
    for await (const line of createInterface({ input: Readable.from(stream) })) {
      const { type, object } = JSON.parse(line) as { readonly type: string; readonly object: SeenPod };
      const { uid, deletionTimestamp } = object.metadata;
      if (type === "ADDED") {
        const started = this.#start(object);
        this.#own.set(uid, started);
        started.catch(fail);
      } else if (type === "MODIFIED" && deletionTimestamp !== undefined && !this.#ending.has(uid)) {
        this.#ending.add(uid);
        const own = this.#own.get(uid);
        if (own !== undefined) void own.then((pod) => this.#stop(pod)).catch(fail);
      } else if (type === "DELETED") {
        this.#own.delete(uid);
        this.#ending.delete(uid);
      }
    }
    throw new Error("the API server ended its watch");
  }

  async #start({ metadata: { name, uid } }: SeenPod): Promise<OwnPod> {
    const { runtime, images } = this.#cri;
    const directory = join(root, "bare", uid);
    const volume = join(directory, "token");
    const cgroup = `${cgroupRoot}/bare/${uid}`;
    await Promise.all(["app", "token"].map((each) => mkdir(join(directory, each), { recursive: true })));
    await writeFile(join(directory, "hosts"), "127.0.0.1 localhost\n");
    await writeFile(join(directory, "termination-log"), "", { mode: 0o666 });
    await (await this.#cgroups).apply(cgroup, { cpuShares: 2 });
    const place = { namespace, name: "default", subresource: "token" };
    const boundObjectRef = { apiVersion: "v1", kind: "Pod", name, uid };
    const spec = { expirationSeconds: 3607, boundObjectRef };
    const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec };
    const { status } = await this.#client.create({ lane: "objects", resource: tokens, place, signal }, request);
    await systemMounts.mount({ source: "tmpfs", target: volume, fileSystem: "tmpfs", options: ["size=64k"] });
    for (const file of ["token", "ca.crt", "namespace"]) await writeFile(join(volume, file), status.token);

    using _place = await this.#starts.acquire();
    await this.#say(name, uid, podStatus("Pending", { waiting: { reason: "ContainerCreating" } }));
    const config = sandboxConfig(uid, directory, cgroup);
    const { podSandboxId } = await runtime.runPodSandbox({ config });
    await runtime.podSandboxStatus({ podSandboxId });
    const container = containerConfig({ directory }, 0);
    await images.imageStatus({ image: container.image });
    await this.#event(name, uid, "Pulled");
    const mounts = [
      ...container.mounts,
      { containerPath: "/var/run/secrets/kubernetes.io/serviceaccount", hostPath: volume, readonly: true },
    ];
    const created = { podSandboxId, config: { ...container, mounts }, sandboxConfig: config };
    const { containerId } = await runtime.createContainer(created);
    await this.#event(name, uid, "Created");
    await runtime.startContainer({ containerId });
    await this.#event(name, uid, "Started");
    await runtime.containerStatus({ containerId });
    await this.#say(name, uid, podStatus("Running", { running: { startedAt: now() } }));
    return { name, uid, directory, cgroup, token: volume, sandboxId: podSandboxId, containerId };
  }

  async #stop({ name, uid, directory, cgroup, token, sandboxId, containerId }: OwnPod): Promise<void> {
    const { runtime } = this.#cri;
    using _place = await this.#stops.acquire();
    await this.#event(name, uid, "Killing");
    await runtime.stopContainer({ containerId, timeout: 30n });
    await runtime.stopPodSandbox({ podSandboxId: sandboxId });
    await runtime.containerStatus({ containerId });
    await this.#say(name, uid, podStatus("Succeeded", { terminated: { exitCode: 0, finishedAt: now() } }));
    await systemMounts.unmount(token);
    await (await this.#cgroups).remove(cgroup);
    const gone = { gracePeriodSeconds: 0, preconditions: { uid } };
    await this.#client.delete({ lane: "status", resource: pods, place: { namespace, name }, signal }, gone);
    await runtime.removeContainer({ containerId });
    await runtime.removePodSandbox({ podSandboxId: sandboxId });
    await rm(directory, { recursive: true });
  }

  async #say(name: string, uid: string, status: object): Promise<void> {
    const call = { lane: "status", resource: pods, place: { namespace, name, subresource: "status" }, signal } as const;
    await this.#client.patch(call, "strategic", { metadata: { uid }, status });
  }

  async #event(name: string, uid: string, reason: string): Promise<void> {
    const object = {
      apiVersion: "v1",
      kind: "Event",
      metadata: { name: `${name}.${(this.#events++).toString(16)}`, namespace },
      involvedObject: { apiVersion: "v1", kind: "Pod", namespace, name, uid },
      ...{ reason, message: `${reason} container app`, type: "Normal", count: 1 },
      ...{ source: { component: "bare", host: node }, firstTimestamp: now(), lastTimestamp: now() },
    };
    await this.#client.create({ lane: "events", resource: events, place: { namespace }, signal }, object);
  }
}

function now(): string {
  return new Date().toISOString().replace(/\.\d+/u, "");
}

function podStatus(phase: string, state: object): object {
  const status = phase === "Running" ? "True" : "False";
  const types = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
  return {
    phase,
    startTime: now(),
    conditions: types.map((type) => ({ type, status, lastProbeTime: null, lastTransitionTime: now() })),
    containerStatuses: [
      {
        name: "app",
        state,
        lastState: {},
        ready: phase === "Running",
        restartCount: 0,
        image: "demo",
        imageID: "demo",
      },
    ],
  };
}

function fail(error: unknown): void {
  console.error(error);
  process.exit(1);
}

async function main(): Promise<void> {
  const access = decodeKubeconfig(await readFile(kubeconfig, "utf8"), kubeconfig);
  if (access === undefined) throw new Error(`${kubeconfig} names no cluster`);
  const ports = { clock: systemClock, files: systemFiles, processes: systemProcesses };
  const transport = openKubeTransport(access, { ...ports, userAgent: "bare-client" });
  const kubelet = new BareKubelet(new ApiClient({ transport, clock: systemClock }, limits));
  await Promise.all([kubelet.follow(), kubelet.drain()]);
}

await main();
