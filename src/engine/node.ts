import { Emitter } from "../base/emitter.ts";
import type { Pod } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import type { Cause, PodRef } from "../journal/entry.ts";
import type { EvictionManager } from "../eviction/manager.ts";
import type { Journal } from "../journal/journal.ts";
import type { Observer } from "../journal/observer.ts";
import type { PodCounts } from "../metrics/pod-gauges.ts";
import type { Room } from "../kubelet/room.ts";
import type { KubeletConfig } from "../kubelet/config.ts";
import type { Kubelet } from "../kubelet/kubelet.ts";
import type { DecisionRecorder } from "../pods/decision-recorder.ts";
import type { Logger } from "../ports/log.ts";
import type { Ports } from "../ports/ports.ts";
import type { TreeUsage } from "../ports/stats-files.ts";
import type { TrackedCri } from "../runtime-service/deadlines.ts";
import type { RuntimeInfo } from "../runtime-service/features.ts";
import type { NodePod } from "../node-api/node-pods.ts";
import { NodePage } from "../page/node-page.ts";
import type { PodNews } from "../pods-api/pods-service.ts";
import type { ObjectLookup } from "../runtime/config/environment.ts";
import type { LogOwners } from "../runtime/operations/node-garbage.ts";
import type { Health, LocalApi } from "../server/local-api.ts";
import { FileSource, type FileSourceConfig } from "../sources/file-source.ts";
import { HttpSource, type HttpSourceConfig } from "../sources/http-source.ts";
import { RunSource, type RunSourceConfig } from "../sources/run-source.ts";
import { RunStore } from "../sources/run-store.ts";
import type { PodUpdate, SourceDependencies, SourceName } from "../sources/source.ts";
import type { ClusterSetup } from "./cluster.ts";
import type { ChangedObject } from "../api/referenced-objects.ts";
import type { StorageWait } from "../volumes/storage-waits.ts";
import type { MeasuredVolume } from "../volumes/volume-stats.ts";
import { watchPods } from "./watch-pods.ts";
import type { ImageRoom } from "./image-room.ts";
import { countedPods, desiredPods, presentPods } from "./listed-pods.ts";
import { NodeCollection, reclaimOf } from "./node-collection.ts";
import { NodeLocalApi } from "./node-local-api.ts";
import type { RunClaimsDrivers } from "../claims/driver-need.ts";
import { RunClaims } from "../claims/run-claims.ts";
import { isTerminalPhase } from "../status/phase.ts";
import { buildNode, type NodeParts } from "./node-parts.ts";

/** Where a node's pods come from; what is left out is no source. */
export interface NodeSources {
  readonly file?: FileSourceConfig;
  readonly http?: HttpSourceConfig;
  readonly run?: RunSourceConfig & ClaimPlaces;
}

/** Where `podwright run` keeps claims. */
interface ClaimPlaces {
  /** Their documents, absolute, e.g. `<state>/claims`. */
  readonly claims: string;
  /** Their data, absolute, e.g. `<state>/volumes`. */
  readonly volumes: string;
  /** Undefined: no CSI drivers. */
  readonly drivers?: RunClaimsDrivers & { readonly served: (pod: Pod) => readonly PodRef[] };
}

export interface NodeDependencies {
  readonly ports: Ports;
  /** With deadlines. */
  readonly cri: TrackedCri;
  readonly journal: Journal;
  readonly log: Logger;
  /** Which pods of the runtime may be removed when no source wants them. */
  readonly owns: (uid: PodUid) => Promise<boolean>;
  /** A pod is gone: perhaps it was the last. */
  readonly onPodGone: () => void;
  /** Ends the process, after its answer has gone out. */
  readonly exit: () => void;
  /** Keeps what pods' workers decide, and from what. */
  readonly recorder: DecisionRecorder | undefined;
  readonly observer?: Observer | undefined;
  /** Identifies the owners of unknown pods' logs; undefined: such logs stay. */
  readonly logOwners?: (() => Promise<LogOwners>) | undefined;
  /** Garbage collection of images; undefined: none. */
  readonly images?: ImageRoom | undefined;
  /** What the node has beyond what every kubelet has. */
  readonly rooms?: readonly Room[] | undefined;
  readonly evictions?: EvictionManager | undefined;
  /** Called with each change of the desired state. */
  readonly onUpdate?: (update: PodUpdate) => void;
}

export interface NodeSetup {
  readonly version: string;
  readonly config: KubeletConfig;
  readonly runtime: RuntimeInfo;
  readonly runtimeEndpoint: string;
  /** The file to which decisions are recorded. */
  readonly record: string | undefined;
  readonly sources: NodeSources;
  /** What is known of the node before it starts. */
  readonly checks: Health["checks"];
  /** Undefined: the node stands alone. */
  readonly cluster: ClusterSetup | undefined;
}

const noObjects: ObjectLookup = { configMap: () => undefined, secret: () => undefined };

/**
 * A kubelet with the sources of its pods and with what answers the command line: what `podwright run` and
 * `podwright kubelet` have in common.
 */
export class Node {
  readonly localApi: LocalApi;
  /** What the node page shows. */
  readonly page: NodePage;
  readonly #kubelet: Kubelet;
  readonly #parts: NodeParts;
  readonly #run: RunSource | undefined;
  readonly #claims: RunClaims | undefined;
  readonly #gone = new Emitter<PodUid>();
  readonly #watched: readonly (FileSource | HttpSource)[];

  constructor(deps: NodeDependencies, setup: NodeSetup) {
    const { ports, journal, log } = deps;
    const { clock, files, mounts, random } = ports;
    const { config, runtime, sources } = setup;
    const { nodeName } = config.node;
    const names: SourceName[] = (["file", "http", "run"] as const).filter((name) => sources[name] !== undefined);
    const toMux = (name: SourceName): SourceDependencies => {
      return { clock, journal, log, nodeName, deliver: (state) => this.#parts.deliver(name, state) };
    };
    const objectsChanged = (objects: readonly ChangedObject[], cause: Cause): void =>
      this.#kubelet.workers.objectsChanged(objects, cause);
    const nodeLabels = { "kubernetes.io/hostname": nodeName, "kubernetes.io/os": "linux" };
    if (sources.run !== undefined) {
      const store = new RunStore(files, sources.run.claims);
      const storage = new RunClaims(
        {
          ...{ clock, random, files, mounts, journal, log, store },
          drivers: sources.run.drivers,
          pods: () => this.#allPods(),
        },
        { directories: sources.run.volumes, podsDirectory: `${config.node.rootDirectory}/pods`, nodeLabels },
      );
      this.#claims = storage;
      const own = { files, random, objectsChanged, storage, hasEnded: this.#hasEnded.bind(this) };
      this.#run = new RunSource({ ...toMux("run"), ...own }, sources.run);
    }
    this.#watched = staticSources(sources, toMux, ports);
    const objects = this.#run?.objects ?? noObjects;
    const onPodGone = (uid: PodUid): void => {
      this.#gone.emit(uid);
      this.#claims?.podGone();
      deps.onPodGone();
    };
    this.#parts = buildNode(
      {
        ports,
        cri: deps.cri,
        journal,
        journaled: () => journal.entries({ kinds: ["observation"] }),
        log,
        owns: deps.owns,
        handlers: runtime.handlers,
        pressure: deps.evictions,
        logOwners: deps.logOwners,
        rooms: [deps.rooms ?? [], deps.images ?? [], deps.evictions ?? []].flat(),
        recorder: deps.recorder,
        observer: deps.observer,
        onPodGone,
        onUpdate: deps.onUpdate,
      },
      {
        config,
        ...{ sources: names, objects, cluster: setup.cluster },
        claims: this.#claims && { storage: this.#claims, nodeLabels },
      },
    );
    this.#kubelet = this.#parts.kubelet;
    deps.evictions?.reclaimWith(reclaimOf(this.#kubelet, deps.images?.collector));
    this.localApi = this.#buildLocalApi(deps, setup);
    this.page = new NodePage({
      ...{ clock, log, nodeName, localApi: this.localApi },
      known: () => this.nodePods(),
      probes: this.#kubelet.probes.results,
    });
  }

  /** What answers the command line. */
  #buildLocalApi(deps: NodeDependencies, setup: NodeSetup): NodeLocalApi {
    const { ports } = deps;
    const { runtime } = setup;
    const { nodeName, podLogsRoot } = setup.config.node;
    return new NodeLocalApi(
      {
        ...{
          clock: ports.clock,
          random: ports.random,
          journal: deps.journal,
          kubelet: this.#kubelet,
          mux: this.#parts.mux,
          run: this.#run,
          claims: this.#claims,
        },
        garbage: new NodeCollection({
          cri: deps.cri,
          garbage: this.#kubelet.garbage,
          images: deps.images?.collector,
          journal: deps.journal,
        }),
        served: (pod) => setup.sources.run?.drivers?.served(pod) ?? [],
        evictions: deps.evictions,
        surroundings: () => [
          ...setup.checks,
          ...(deps.evictions?.health() ?? []),
          ...(this.#parts.cluster?.health() ?? []),
        ],
        rejectedManifests: () => this.#watched.flatMap(({ rejected }) => rejected),
        exit: () => deps.exit(),
      },
      {
        version: setup.version,
        pid: ports.processes.ownPid,
        runtime: `${runtime.name} ${runtime.version}`,
        runtimeEndpoint: setup.runtimeEndpoint,
        record: setup.record,
        nodeName,
        podLogsRoot,
      },
    );
  }

  /** True when no pod is wanted and none is left. */
  get isEmpty(): boolean {
    return this.#parts.mux.pods().length === 0 && this.#kubelet.pods.list().length === 0;
  }

  /** Pods with what the kubelet's API shows of them, also those that no source has any more while they stop. */
  nodePods(): NodePod[] {
    return presentPods(this.#kubelet.pods.list());
  }

  /** Those that a source has. */
  desiredPods(): NodePod[] {
    return desiredPods(this.#kubelet.pods.list());
  }

  #hasEnded(uid: PodUid): boolean {
    return isTerminalPhase(this.#kubelet.statuses.get(uid)?.phase);
  }

  /** Pods that are wanted, and those that are still there. */
  #allPods(): Pod[] {
    const wanted = this.#parts.mux.pods().map(({ pod }) => pod);
    return [...wanted, ...this.#kubelet.pods.list().flatMap(({ view }) => view.pod ?? [])];
  }

  /** Calls back when a pod has a new status, has ended or is gone, until disposed of. It must not throw. */
  watchPods(listener: (news: PodNews) => void): Disposable {
    const refs = this.nodePods().map(({ pod: { metadata } }) => metadata);
    const { statuses, workers, pods } = this.#kubelet;
    const pod = (uid: PodUid): Pod | undefined => pods.get(uid);
    return watchPods({ statuses, workers, pod, refs, gone: this.#gone }, listener);
  }

  /** Pods as metrics count them. */
  counts(): PodCounts {
    const { pods, volumes } = this.#kubelet;
    const plugins = (pod: Pod): readonly string[] => volumes.plugins(pod);
    return { pods: countedPods(pods.list(), plugins), mirrorPods: this.#parts.cluster?.mirrorPods ?? 0 };
  }

  /** A pod that the node has. */
  pod(uid: PodUid): Pod | undefined {
    return this.#kubelet.pods.get(uid);
  }

  /** What is known of a pod's volumes that lead outside it. */
  measuredVolumes(uid: PodUid): readonly MeasuredVolume[] {
    return this.#kubelet.volumes.measured(uid);
  }

  /** What a volume's directory takes by its quota; undefined: its tree has to be walked. */
  async quotaUsage(pod: Pod, directory: string, signal: AbortSignal): Promise<TreeUsage | undefined> {
    return await this.#kubelet.volumes.quotaUsage(pod, directory, signal);
  }

  /** Volumes whose storage or driver does not answer. */
  silentVolumes(): readonly StorageWait[] {
    return this.#kubelet.volumes.silent();
  }

  /** What each subsystem last managed to do and what it waits for. */
  health(): Health["checks"] {
    return this.#kubelet.health();
  }

  /**
   * Reads the pods of `podwright run` from earlier runs. To be called before the engine accepts requests: otherwise it
   * would take known pods for new ones.
   */
  async load(): Promise<void> {
    await this.#run?.load();
  }

  /** Runs pods until the signal aborts; they then stay as they are. Rejects only for a defect. */
  async run(signal: AbortSignal): Promise<void> {
    const sources = this.#watched.map((source) => source.run(signal));
    const claims = this.#claims?.run(this.#kubelet.startUp.when("allKnown"), signal);
    await Promise.all([this.#parts.run(signal), this.page.run(signal), claims, ...sources]);
  }

  /** For a node that ends without pods: removes what they left, and its cgroups. */
  async tidyUp(): Promise<void> {
    // The pod of an unreadable manifest may be running, and finds its files when the manifest is mended.
    if (this.#run?.isComplete === false) return;
    await this.#claims?.removeOrphans();
    await this.#kubelet.tidyUp();
  }
}

function staticSources(
  { file, http }: NodeSources,
  toMux: (name: SourceName) => SourceDependencies,
  { files, network }: Ports,
): (FileSource | HttpSource)[] {
  return [
    ...(file === undefined ? [] : [new FileSource({ ...toMux("file"), files }, file)]),
    ...(http === undefined ? [] : [new HttpSource({ ...toMux("http"), network }, http)]),
  ];
}
