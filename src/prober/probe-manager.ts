import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import type { PodStatus as ApiPodStatus } from "../api/status.ts";
import type { ContainerId, PodUid } from "../base/ids.ts";
import { onePerFamily } from "../base/ip.ts";
import { TimerQueue } from "../base/timer-queue.ts";
import type { PodRef, Recorder } from "../journal/entry.ts";
import type { Observer } from "../journal/observer.ts";
import type { Clock } from "../ports/clock.ts";
import type { RecordFiles } from "../base/patient-files.ts";
import type { Logger } from "../ports/log.ts";
import type { NetworkProbes } from "../ports/network-probes.ts";
import type { Random } from "../ports/random.ts";
import type { ObjectLookup } from "../runtime/config/environment.ts";
import { hideSecrets } from "../runtime/config/hidden-secrets.ts";
import type { NodeContext } from "../runtime/node-context.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { type ContainerStatus, findContainer, type PodStatus } from "../runtime/status/pod-status.ts";
import type { ProbeResult } from "./probe-judgement.ts";
import { ProbeMemory, type Remembered } from "./probe-memory.ts";
import { type ProbeChange, ProbeResults } from "./probe-results.ts";
import { type CommandService, ProbeRunner } from "./probe-runner.ts";
import { probedContainers, probeOf, type ProbeType, probeTypes } from "./probe-spec.ts";
import { type ProbeTarget, type ProbeView, ProbeWorker, type ProbeWorkerDependencies } from "./probe-worker.ts";
import type { ProbeState } from "./probe-state.ts";
import type { Unhealthy } from "../runtime/actions/container-decision.ts";

export interface ProbeManagerDependencies {
  readonly clock: Clock;
  readonly random: Random;
  readonly files: RecordFiles;
  readonly commands: CommandService;
  readonly networkProbes: NetworkProbes;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly node: Pick<NodeContext, "hostIPs" | "rootDirectory">;
  readonly objects: Pick<ObjectLookup, "secret">;
  /** The last known readiness of the pod, from this run or the node's previous kubelet; undefined: unknown. */
  readonly said: (uid: PodUid) => ApiPodStatus | undefined;
  readonly observer?: Observer | undefined;
}

/** The prober's interface for pod workers. */
export interface PodProbes {
  /** Reports an observation of a pod. `ending`: it is being stopped, or has been. */
  observe(pod: Pod, status: PodStatus, ending: boolean): void;
  /** Undefined while no probe of the instance has failed for good. */
  unhealthy(container: Container, instance: ContainerStatus): Unhealthy | undefined;
  /** False until the instance's startup probe has succeeded, if it has one. */
  hasStarted(container: Container, instance: ContainerStatus): boolean;
}

interface ProbedPod {
  readonly ref: PodRef;
  readonly pod: Pod;
  readonly status: PodStatus;
  readonly ending: boolean;
}

/**
 * Probes containers (upstream's prober.Manager): one worker for each container and probe type, all on one timer. Gets
 * its facts from the pods' workers and wakes them when a verdict changes.
 */
export class ProbeManager implements PodProbes {
  readonly results = new ProbeResults();
  readonly #deps: ProbeManagerDependencies;
  readonly #timers: TimerQueue;
  readonly #memory: ProbeMemory;
  readonly #workerDeps: ProbeWorkerDependencies;
  readonly #pods = new Map<PodUid, ProbedPod>();
  readonly #workers = new Map<PodUid, Map<string, ProbeWorker>>();
  /** Start times of instances by this run's clock: later wall-clock jumps change no delay. */
  readonly #starts = new Map<PodUid, Map<ContainerId, number>>();

  constructor(deps: ProbeManagerDependencies) {
    const { clock, random, files, commands, networkProbes, journal, log, node } = deps;
    this.#deps = deps;
    this.#timers = new TimerQueue(clock, "probes");
    this.#memory = new ProbeMemory(files, clock, log, `${node.rootDirectory}/podwright/probes.json`);
    this.#workerDeps = {
      clock,
      random,
      timers: this.#timers,
      runner: new ProbeRunner(clock, this.#timers, commands, networkProbes),
      results: this.results,
      journal,
      log,
      ownStartMs: clock.monotonic(),
      remembered: (uid, id, type) => this.#remembered(uid, id, type),
      observer: deps.observer,
    };
    this.results.onChange((change) => this.#changed(change));
  }

  /** Reads the last run's results; to be awaited before pods are observed. */
  async load(): Promise<void> {
    await this.#deps.files.makeDirectory(`${this.#deps.node.rootDirectory}/podwright`, 0o700);
    await this.#memory.load();
  }

  /** Stops all probing; results stay on disk for the next run. */
  async close(): Promise<void> {
    for (const workers of this.#workers.values()) for (const worker of workers.values()) worker.stop();
    this.#timers[Symbol.dispose]();
    await this.#memory.flush();
  }

  /** Number of workers, and of probes in progress. */
  get activity(): { readonly workers: number; readonly probing: number } {
    const all = [...this.#workers.values()].flatMap((workers) => [...workers.values()]);
    return { workers: all.length, probing: all.filter((worker) => worker.isProbing).length };
  }

  observe(pod: Pod, status: PodStatus, ending: boolean): void {
    const { uid } = pod.metadata;
    const hasProbes = probedContainers(pod).some((container) => probeTypes.some((type) => probeOf(container, type)));
    if (!hasProbes) return this.remove(uid);
    this.#memory.met(
      uid,
      status.containers.map(({ id }) => id),
    );
    this.#noteStarts(uid, status);
    this.#pods.set(uid, { ref: podRef(pod), pod, status, ending });
    this.#lookAt(uid);
  }

  unhealthy(container: Container, { id }: ContainerStatus): Unhealthy | undefined {
    for (const type of ["liveness", "startup"] as const) {
      const finding = this.results.get(id, type);
      if (finding?.result !== "failure" || finding.cause === undefined) continue;
      const graceSeconds = probeOf(container, type)?.terminationGracePeriodSeconds;
      return { cause: finding.cause, ...(graceSeconds !== undefined && { graceSeconds }) };
    }
    return undefined;
  }

  hasStarted(container: Container, { id }: Pick<ContainerStatus, "id">): boolean {
    return container.startupProbe === undefined || this.results.get(id, "startup")?.result === "success";
  }

  /**
   * The probe results for the pod's status, by container. Without a verdict a container is neither started nor ready.
   */
  states(pod: Pod, status: PodStatus): Map<string, ProbeState> {
    const states = new Map<string, ProbeState>();
    for (const container of probedContainers(pod)) {
      const instance = findContainer(status, container.name);
      const says = (type: ProbeType): boolean | undefined =>
        probeOf(container, type) && instance && this.results.get(instance.id, type)?.result === "success";
      const [started, ready] = [says("startup"), says("readiness")];
      states.set(container.name, { ...(started !== undefined && { started }), ...(ready !== undefined && { ready }) });
    }
    return states;
  }

  /** The pod is removed from the node. */
  remove(uid: PodUid): void {
    for (const worker of this.#workers.get(uid)?.values() ?? []) worker.stop();
    this.#workers.delete(uid);
    this.#pods.delete(uid);
    this.#starts.delete(uid);
    this.#memory.forget(uid);
  }

  #lookAt(uid: PodUid): void {
    const known = this.#pods.get(uid);
    if (known === undefined) return;
    const workers = this.#workers.get(uid) ?? new Map<string, ProbeWorker>();
    this.#workers.set(uid, workers);
    const unused = new Set(workers.keys());
    const hide = hideSecrets(this.#deps.objects, known.pod);
    for (const container of probedContainers(known.pod)) {
      const target = this.#target(known, container);
      for (const type of probeTypes) {
        const probe = probeOf(container, type);
        if (probe === undefined) continue;
        const key = `${container.name}/${type}`;
        unused.delete(key);
        const view: ProbeView = {
          container,
          probe,
          target,
          started: target !== undefined && this.hasStarted(container, target),
          ending: known.ending,
          hide,
        };
        const worker = workers.get(key) ?? new ProbeWorker(this.#workerDeps, known.ref, type, view);
        workers.set(key, worker);
        worker.look(view);
      }
    }
    for (const key of unused) {
      workers.get(key)?.stop();
      workers.delete(key);
    }
  }

  #target({ pod, status }: ProbedPod, container: Container): ProbeTarget | undefined {
    const instance = findContainer(status, container.name);
    if (instance?.state !== "running") return undefined;
    const { hostIPs } = this.#deps.node;
    const [own = ""] = onePerFamily(status.sandboxes.find(({ ready }) => ready)?.ips ?? [], hostIPs[0]);
    const address = pod.spec.hostNetwork === true ? (hostIPs[0] ?? "127.0.0.1") : own;
    const startMs = this.#starts.get(pod.metadata.uid)?.get(instance.id) ?? this.#deps.clock.monotonic();
    return { id: instance.id, startMs, address };
  }

  #noteStarts(uid: PodUid, { containers }: PodStatus): void {
    const { clock } = this.#deps;
    const before = this.#starts.get(uid);
    const starts = new Map<ContainerId, number>();
    for (const { id, state, startedAt } of containers) {
      if (state !== "running") continue;
      const agoMs = Math.max(0, clock.now() - Number(startedAt / 1_000_000n));
      starts.set(id, before?.get(id) ?? clock.monotonic() - agoMs);
    }
    this.#starts.set(uid, starts);
  }

  #remembered(uid: PodUid, id: ContainerId, type: ProbeType): ProbeResult | undefined {
    if (type === "liveness") return undefined;
    const fact = type === "startup" ? "started" : "ready";
    const known = this.#memory.get(uid, id)[fact];
    if (known !== undefined) return known ? "success" : "failure";
    if (this.#said(uid, id)[fact] !== true) return undefined;
    // The next run may have to do without the API server.
    this.#memory.note(uid, id, type === "startup" ? { started: true } : { ready: true });
    return "success";
  }

  /**
   * The instance's readiness from another kubelet's status at the API server: switching kubelets loses no readiness.
   */
  #said(uid: PodUid, id: ContainerId): Remembered {
    const { initContainerStatuses = [], containerStatuses = [] } = this.#deps.said(uid) ?? {};
    const all = [...initContainerStatuses, ...containerStatuses];
    const found = all.find(({ containerID }) => containerID?.endsWith(`//${id}`));
    return { ...(found?.ready === true && { ready: true }), ...(found?.started === true && { started: true }) };
  }

  #changed({ pod, id, type, result }: ProbeChange): void {
    if (type === "readiness") this.#memory.note(pod.uid, id, { ready: result === "success" });
    if (type !== "startup" || result !== "success") return;
    this.#memory.note(pod.uid, id, { started: true });
    // Probes that waited for the start begin now.
    this.#lookAt(pod.uid);
  }
}
