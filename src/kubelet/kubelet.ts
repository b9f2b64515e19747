import type { Pod } from "../api/pod.ts";
import type { PodStatus as ApiPodStatus } from "../api/status.ts";
import { onAbort } from "../base/abort.ts";
import { type PodUid, podUid } from "../base/ids.ts";
import type { ImageConfig } from "../images/make-image-manager.ts";
import type { Cause, PodRef, Recorder } from "../journal/entry.ts";
import { measureStep, type Observer } from "../journal/observer.ts";
import { LogRotation, type LogRotationConfig, type RunningLog } from "../logs/rotation.ts";
import { runEvented } from "../pleg/evented.ts";
import { PodCache } from "../pleg/pod-cache.ts";
import { Pleg, type PlegConfig } from "../pleg/pleg.ts";
import { reportAdoption } from "../pods/adoption.ts";
import { firstView, waitingView } from "../pods/waiting-pod.ts";
import type { ClusterHooks } from "../pods/cluster-hooks.ts";
import { PodLeftovers } from "../pods/leftovers.ts";
import { ownStaticPods } from "../pods/own-static-pods.ts";
import type { OwnStaticPod } from "../pods/mirror-actions.ts";
import type { DecisionRecorder } from "../pods/decision-recorder.ts";
import type { NodeAdmission } from "../pods/node-admission.ts";
import type { WorkerConfig, WorkerView } from "../pods/worker-dependencies.ts";
import { resizeNow } from "../pods/pod-resize.ts";
import type { WorkerPlan } from "../pods/worker-plan.ts";
import { PodWorkers } from "../pods/pod-workers.ts";
import { StartedStaticPods } from "../pods/started-static-pods.ts";
import { StaticIdentity } from "../pods/static-identity.ts";
import type { PodChange } from "../pods/pod-change.ts";
import { watchOom } from "../oom/oom-watcher.ts";
import type { NodePressure } from "../eviction/pressure-monitor.ts";
import { SyncLoop } from "../pods/sync-loop.ts";
import { matchesRunning } from "../sources/static-pod.ts";
import type { Cri } from "../ports/cri.ts";
import type { Logger } from "../ports/log.ts";
import type { Ports } from "../ports/ports.ts";
import { ProbeManager } from "../prober/probe-manager.ts";
import { AllocationManager } from "../resources/allocation-manager.ts";
import { ResourceRecord } from "../resources/resource-record.ts";
import { PodCgroups, type PodCgroupsConfig } from "../resources/pod-cgroups.ts";
import { type TrackedCri, withDeadlines } from "../runtime-service/deadlines.ts";
import type { UsedFeatures } from "../runtime-service/features.ts";
import type { RuntimeDependencies } from "../runtime/dependencies.ts";
import type { PodIds } from "../runtime/config/id-ranges.ts";
import { NodeGarbage, type NodeGarbageConfig } from "../runtime/operations/node-garbage.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";
import { runningLogs } from "../runtime/status/running-logs.ts";
import type { ObjectLookup } from "../runtime/config/environment.ts";
import type { NodeContext } from "../runtime/node-context.ts";
import type { PodHoldings } from "../runtime/pod-holdings.ts";
import { PreStopHooks } from "../runtime/operations/pre-stop-hooks.ts";
import { runtimeDependencies } from "./runtime.ts";
import { type ChangedObject, usesObject } from "../api/referenced-objects.ts";
import { kubeletHealth } from "../status/health.ts";
import { StatusManager } from "../status/status-manager.ts";
import { publishStatus } from "../status/publish.ts";

export interface KubeletConfig {
  readonly node: NodeContext;
  readonly cgroups: Omit<PodCgroupsConfig, "hugePageSizes">;
  readonly pleg: PlegConfig;
  readonly worker: WorkerConfig;
  readonly images: ImageConfig;
  /** For pods with user namespaces of their own. */
  readonly podIds: PodIds;
  /** Pods started at a time, and taken down. More finish no sooner; fewer leave processors idle. */
  readonly parallelStarts: number;
  readonly housekeepingPeriodMs: number;
  readonly logRotation: LogRotationConfig;
  readonly garbage: NodeGarbageConfig;
  /** Deadline of most CRI calls (runtimeRequestTimeout). */
  readonly runtimeRequestTimeoutMs: number;
  /** `containerd`: prefix of container ids in statuses. */
  readonly runtimeName: string;
  readonly admission: NodeAdmission;
}

export interface KubeletDependencies {
  readonly ports: Omit<Ports, "network">;
  readonly cri: Cri;
  readonly journal: Recorder;
  readonly log: Logger;
  /** ConfigMaps and Secrets. */
  readonly objects: ObjectLookup;
  readonly sourcesReady: (source?: string) => boolean;
  /** Which pods of the runtime may be removed when no source wants them. */
  readonly owns: (uid: PodUid) => Promise<boolean>;
  /** What the runtime can do beyond what every runtime can. */
  readonly features: UsedFeatures;
  /** Undefined on a node that is in no cluster. */
  readonly cluster?: ClusterHooks;
  /** Undefined: nobody looks at the machine. */
  readonly pressure?: NodePressure | undefined;
  readonly recorder?: DecisionRecorder | undefined;
  readonly observer?: Observer | undefined;
}

/** One pod with everything that is known of it. */
export interface KnownPod {
  readonly view: WorkerView;
  /** Undefined before the first look at the pod. */
  readonly status: ApiPodStatus | undefined;
}

/** The composition root: builds the managers, gives each what it needs, and starts them. What they do is theirs. */
export class Kubelet {
  /** The statuses of pods, for whoever publishes them. */
  readonly statuses: StatusManager;
  readonly listing: Pick<Pleg, "firstListing" | "isListed">;
  readonly #deps: KubeletDependencies;
  readonly #cri: TrackedCri;
  readonly #cache: PodCache;
  readonly #pleg: Pleg;
  readonly #workers: PodWorkers;
  readonly #syncLoop: SyncLoop;
  readonly #identity: StaticIdentity;
  readonly #cgroups: PodCgroups;
  readonly probes: ProbeManager;
  readonly #allocations: AllocationManager;
  readonly #actuated: ResourceRecord;
  readonly #views = new Map<string, WorkerView>();
  readonly #preStops = new PreStopHooks();
  readonly #logRotation: LogRotation;
  readonly #garbage: NodeGarbage;
  readonly #holdings: PodHoldings;
  readonly #onPodGone: (uid: string) => void;

  constructor(deps: KubeletDependencies, config: KubeletConfig, onPodGone: (uid: string) => void) {
    const { ports, journal, log } = deps;
    const { clock, files, processes, cgroups } = ports;
    const cri = withDeadlines(deps.cri, clock, config.runtimeRequestTimeoutMs, deps.observer);
    this.#deps = deps;
    this.#cri = cri;
    this.#onPodGone = onPodGone;
    this.#cache = new PodCache(clock);
    const looking = { clock, cri, cache: this.#cache, journal, observer: deps.observer };
    this.listing = this.#pleg = new Pleg({ ...looking, log: log.child({ room: "pleg" }) }, config.pleg);
    const tree = { ...config.cgroups, hugePageSizes: config.node.resources.hugePageSizes };
    const owned = { cgroups, processes, clock, journal, log: log.child({ room: "resources" }) };
    this.#cgroups = new PodCgroups(owned, tree);
    this.statuses = new StatusManager(journal);
    this.#actuated = new ResourceRecord(files, log, `${config.node.rootDirectory}/actuated_pods_state`);
    this.#allocations = this.#makeAllocations(config);
    const own = { cri, podCgroups: this.#cgroups, actuated: this.#actuated, preStops: this.#preStops };
    const runtime = runtimeDependencies(deps, config, own);
    this.#holdings = runtime.holdings;
    this.probes = new ProbeManager({
      ...{ ...ports, journal, observer: deps.observer, node: config.node },
      ...{ commands: cri.runtime, objects: deps.objects, said: (uid) => this.statuses.get(uid) },
      log: log.child({ room: "prober" }),
    });
    this.#workers = this.#makeWorkers(runtime, config);
    this.probes.results.onChange(({ pod, result, cause }) => {
      this.#workers.get(podUid(pod.uid))?.probed(cause, result === "failure");
    });
    this.#syncLoop = new SyncLoop({
      runtime,
      ...{ pleg: this.#pleg, cache: this.#cache, workers: this.#workers, allocations: this.#allocations },
      sourcesReady: (source) => this.#wantedIsKnown(source),
      moreToCome: () => !this.#identity.settled,
      owns: deps.owns,
      leftovers: new PodLeftovers(runtime),
      housekeepingPeriodMs: config.housekeepingPeriodMs,
      ...{ admission: config.admission, cluster: deps.cluster, pressure: deps.pressure },
      hadEnded: (uid) => this.statuses.hadEnded(uid),
    });
    this.#logRotation = this.#makeLogRotation(config);
    this.#garbage = this.#makeGarbage(runtime, config.garbage);
    this.#identity = new StaticIdentity(
      {
        pleg: this.#pleg,
        cache: this.#cache,
        started: new StartedStaticPods(files, log, `${config.node.rootDirectory}/podwright/static-pods`),
        journal,
        log: log.child({ room: "pods" }),
        matchesRunning,
        observeLimitMs: config.worker.observeLimitMs,
      },
      (change) => this.#syncLoop.handle(change),
    );
  }

  /** Takes a change of what is wanted; works before and while it runs. */
  handle(change: PodChange): void {
    this.#identity.handle(change);
  }

  /** ConfigMaps or Secrets were added, changed or removed: the pods that refer to them are looked at. */
  objectsChanged(objects: readonly ChangedObject[], cause: Cause): void {
    for (const worker of this.#workers.list()) {
      const { pod } = worker;
      if (pod !== undefined && objects.some((object) => usesObject(pod, object))) worker.objectsChanged(cause);
    }
  }

  /** Pods that have no sandbox for want of a network can have one now. */
  networkUp(cause: Cause): void {
    for (const worker of this.#workers.list()) {
      if (!this.#cache.get(worker.uid).status.sandboxes.some(({ ready }) => ready)) worker.objectsChanged(cause);
    }
  }

  /** Something about the pod has changed elsewhere: it is looked at. */
  wake(uid: string, cause: Cause): void {
    this.#workers.get(podUid(uid))?.wake(cause);
  }

  /** Runs pods until the signal aborts; they then stay as they are. */
  async run(signal: AbortSignal): Promise<void> {
    const { ports, log } = this.#deps;
    using _hooks = onAbort(signal, () => this.#preStops.close());
    await Promise.all([this.probes.load(), this.#allocations.load(), this.#syncLoop.load()]);
    this.#workers.start(signal);
    void reportAdoption({ ...this.#deps, clock: ports.clock, pleg: this.#pleg, workers: this.#workers });
    await Promise.all([
      this.#pleg.run(signal),
      runEvented(this.#cri, this.#pleg, ports.clock, log.child({ room: "pleg" }), signal),
      this.#syncLoop.run(signal),
      this.#logRotation.run(signal),
      this.#garbage.run(signal),
      this.#allocations.run(signal),
      watchOom({ ...this.#deps, kernelLog: ports.kernelLog, pods: () => this.#observed() }, signal),
    ]);
    await this.probes.close();
  }

  /** Pods that are wanted or not yet gone, also with changes that came after their workers' latest steps. */
  pods(): KnownPod[] {
    const waiting = this.#syncLoop.waiting().map((pod) => ({ view: waitingView(pod), status: undefined }));
    const known = this.#workers.list().map((worker) => {
      const { ref, uid, pod, state } = worker;
      const view = this.#views.get(uid) ?? firstView({ ref, pod, state, status: this.#cache.get(uid).status });
      const resize = resizeNow({ allocations: this.#allocations, actuated: this.#actuated }, pod, view);
      const granted = pod && this.#allocations.allocatedPod(pod);
      return { view: { ...view, pod: granted ?? view.pod, state, resize }, status: this.statuses.get(uid) };
    });
    return [...known, ...waiting];
  }

  /** True once pods that an earlier life left behind are among them. */
  readonly knowsAllPods = (): boolean => this.#syncLoop.knowsAll;

  pod(uid: string): Pod | undefined {
    return this.#workers.get(podUid(uid))?.pod;
  }

  /** Whether a pod of that UID is wanted or not yet gone. */
  has(uid: string): boolean {
    return (
      this.#workers.get(podUid(uid)) !== undefined || this.#syncLoop.waiting().some((pod) => pod.metadata.uid === uid)
    );
  }

  staticPods(): OwnStaticPod[] {
    return ownStaticPods(this.#workers.list(), this.#syncLoop.waiting(), (uid) => this.#views.get(uid)?.pod);
  }

  /** What would be done next for each pod. */
  async plans(): Promise<readonly WorkerPlan[]> {
    return await this.#workers.plans();
  }

  /** What each subsystem last managed to do and what it waits for. */
  health(): { readonly name: string; readonly ok: boolean; readonly detail: string }[] {
    const outstanding = this.#cri.outstanding();
    return kubeletHealth(this.#deps.ports.clock.monotonic(), this.#pleg, outstanding, this.probes.activity);
  }

  /** For a node that ends without pods: removes what they left, and what they shared. */
  async tidyUp(): Promise<void> {
    await this.#syncLoop.removeLeftovers(new AbortController().signal);
    await this.#holdings.tidyUp();
  }

  #makeWorkers(runtime: RuntimeDependencies, config: KubeletConfig): PodWorkers {
    const probes = this.probes.states.bind(this.probes);
    const publish = (view: WorkerView, cause: Cause): void => {
      this.#views.set(view.ref.uid, view);
      publishStatus(this.statuses, view, cause, {
        clock: this.#deps.ports.clock,
        journal: this.#deps.journal,
        runtimeName: config.runtimeName,
        probes,
        recursiveReadOnlyMounts: this.#deps.features.recursiveReadOnlyMounts,
        hostIPs: this.#deps.cluster === undefined ? [] : config.node.hostIPs,
      });
      if (view.state.kind === "terminated") this.#syncLoop.roomMade();
      if (view.state.kind === "terminated" && view.state.released) this.#deps.cluster?.podReleased(view.ref.uid);
    };
    const rivals = async (ref: PodRef): Promise<readonly PodUid[]> => {
      const others = this.#pleg.podsNamed(ref.namespace, ref.name).filter((uid) => uid !== ref.uid);
      const owned = await Promise.all(others.map((uid) => this.#deps.owns(uid)));
      return others.filter((_, index) => owned[index]);
    };
    return new PodWorkers(
      {
        runtime,
        pleg: this.#pleg,
        cache: this.#cache,
        probes: this.probes,
        allocations: this.#allocations,
        config: config.worker,
        rivals,
        publish,
        measured: (pod, kind, step) => measureStep(this.#deps.observer, this.#deps.ports.clock, pod, kind, step),
        recorder: this.#deps.recorder,
      },
      (worker) => this.#gone(worker.uid),
    );
  }

  #makeLogRotation(config: KubeletConfig): LogRotation {
    const { ports, journal, log } = this.#deps;
    const running = (): RunningLog[] =>
      this.#observed().flatMap((status) => runningLogs(status, config.node.podLogsRoot));
    return new LogRotation(
      { ...ports, runtime: this.#cri.runtime, journal, log: log.child({ room: "logs" }), running },
      config.logRotation,
    );
  }

  /** What each pod may have of the node's resources. */
  #makeAllocations({ node }: KubeletConfig): AllocationManager {
    const { ports, journal, log } = this.#deps;
    const { clock, files } = ports;
    return new AllocationManager({
      clock,
      journal,
      allocated: new ResourceRecord(files, log, `${node.rootDirectory}/allocated_pods_state`),
      actuated: this.#actuated,
      node: node.resources,
      // Whoever waits for room was promised it.
      activePods: () => {
        const waiting = this.#syncLoop.waiting().map((pod) => this.#allocations.allocatedPod(pod));
        return [...this.#workers.holding(), ...waiting];
      },
      known: (uid) => this.#isKnown(podUid(uid)),
      isOver: (uid) => (this.#workers.get(podUid(uid))?.state.kind ?? "syncing") !== "syncing",
      ready: () => this.#wantedIsKnown() && !this.#syncLoop.isTakingUp,
      changed: (uid, cause) => this.#workers.get(podUid(uid))?.wake(cause),
    });
  }

  #makeGarbage(runtime: RuntimeDependencies, config: NodeGarbageConfig): NodeGarbage {
    const deps = {
      runtime,
      ready: () => this.#wantedIsKnown() && this.#pleg.lastRelistMs !== undefined,
      pods: () => this.#observed(),
      known: (uid: string) => this.#isKnown(podUid(uid)),
    };
    return new NodeGarbage(deps, config);
  }

  /** Every source, or the named one, has said what it wants, and the workers know all of it. */
  #wantedIsKnown(source?: string): boolean {
    return this.#deps.sourcesReady(source) && this.#identity.settled;
  }

  /** What this node's pods are, as last observed. */
  #observed(): PodStatus[] {
    return this.#workers.list().map(({ uid }) => this.#cache.get(uid).status);
  }

  #isKnown(uid: PodUid): boolean {
    return this.#workers.get(uid) !== undefined || this.#cache.has(uid) || this.#pleg.isListed(uid);
  }

  #gone(uid: PodUid): void {
    this.#views.delete(uid);
    this.statuses.remove(uid);
    this.probes.remove(uid);
    this.#allocations.remove(uid);
    this.#onPodGone(uid);
  }
}
