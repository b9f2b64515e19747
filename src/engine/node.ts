import type { PodUid } from "../base/ids.ts";
import type { Cause } from "../journal/entry.ts";
import type { Journal } from "../journal/journal.ts";
import { Kubelet, type KubeletConfig } from "../kubelet.ts";
import type { DecisionRecorder } from "../pods/decision-recorder.ts";
import type { Cri } from "../ports/cri.ts";
import type { Logger } from "../ports/log.ts";
import type { Ports } from "../ports/ports.ts";
import type { RuntimeInfo } from "../runtime-service/features.ts";
import type { NodePod } from "../node-api/node-pods.ts";
import type { ObjectLookup } from "../runtime/environment.ts";
import type { Engine, Health } from "../server/engine.ts";
import { FileSource, type FileSourceConfig } from "../sources/file-source.ts";
import { HttpSource, type HttpSourceConfig } from "../sources/http-source.ts";
import { PodMux } from "../sources/mux.ts";
import { RunSource, type RunSourceConfig } from "../sources/run-source.ts";
import type { PodUpdate, SourceDependencies, SourceName } from "../sources/source.ts";
import { ClusterObjects } from "./cluster-objects.ts";
import { Cluster, type ClusterSetup } from "./cluster.ts";
import type { ChangedObject } from "../volumes/changed-objects.ts";
import { NodeEngine } from "./node-engine.ts";

/** Where a node's pods come from; what is left out is no source. */
export interface NodeSources {
  readonly file?: FileSourceConfig;
  readonly http?: HttpSourceConfig;
  readonly run?: RunSourceConfig;
}

export interface NodeDependencies {
  readonly ports: Ports;
  readonly cri: Cri;
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
}

export interface NodeSetup {
  readonly version: string;
  readonly config: KubeletConfig;
  readonly runtime: RuntimeInfo;
  readonly runtimeEndpoint: string;
  /** The file to which decisions are recorded. */
  readonly record: string | undefined;
  readonly sources: NodeSources;
  /** Undefined: the node stands alone. */
  readonly cluster?: ClusterSetup;
}

const noObjects: ObjectLookup = { configMap: () => undefined, secret: () => undefined };

/**
 * A kubelet with the sources of its pods and with what answers the command line: what `podwright run` and
 * `podwright kubelet` have in common.
 */
export class Node {
  readonly engine: Engine;
  readonly #kubelet: Kubelet;
  readonly #mux: PodMux;
  readonly #cluster: Cluster | undefined;
  readonly #objects: ClusterObjects | undefined;
  readonly #run: RunSource | undefined;
  readonly #watched: readonly { run(signal: AbortSignal): Promise<void> }[];

  constructor(deps: NodeDependencies, setup: NodeSetup) {
    const { ports, journal, log } = deps;
    const { clock, files, random } = ports;
    const { config, runtime, sources } = setup;
    const { nodeName, podLogsRoot } = config.node;
    const names: SourceName[] = (["file", "http", "run"] as const).filter((name) => sources[name] !== undefined);
    if (setup.cluster !== undefined) names.push("api");
    const onUpdate = (update: PodUpdate): void => {
      this.#objects?.wanted(update);
      this.#kubelet.handle(update);
      this.#cluster?.wantedChanged();
    };
    this.#mux = new PodMux({ clock, journal, onUpdate }, names);
    const toMux = (name: SourceName): SourceDependencies => {
      return { clock, journal, log, nodeName, deliver: (state) => this.#mux.set(name, state) };
    };
    const objectsChanged = (objects: readonly ChangedObject[], cause: Cause): void =>
      this.#kubelet.objectsChanged(objects, cause);
    this.#run = sources.run && new RunSource({ ...toMux("run"), files, random, objectsChanged }, sources.run);
    this.#watched = staticSources(sources, toMux, ports);
    this.#objects =
      setup.cluster &&
      new ClusterObjects({ client: setup.cluster.client, clock, random, journal, log, objectsChanged });
    // Runtimes that don't list their handlers can't do what came after that.
    const handler = runtime.handlers.find(({ name }) => name === "");
    this.#kubelet = new Kubelet(
      {
        ...deps,
        objects: this.#run?.objects ?? this.#objects?.lookup ?? noObjects,
        features: {
          recursiveReadOnlyMounts: handler?.recursiveReadOnlyMounts ?? false,
          userNamespaces: handler?.userNamespaces ?? false,
        },
        sourcesReady: () => this.#mux.allSourcesSeen(),
        ...(setup.cluster && {
          cluster: {
            unsupported: (pod) => this.#cluster?.unsupported(pod) ?? "",
            podReleased: (uid) => this.#cluster?.podReleased(uid),
          },
        }),
      },
      config,
      (uid) => {
        this.#objects?.gone(uid);
        deps.onPodGone();
      },
    );
    this.#cluster =
      setup.cluster &&
      new Cluster({ ...toMux("api"), ...deps, random, kubelet: this.#kubelet, mux: this.#mux }, setup.cluster);
    this.engine = new NodeEngine(
      {
        ...{ clock, random, journal, kubelet: this.#kubelet, mux: this.#mux, run: this.#run },
        clusterHealth: () => this.#cluster?.health() ?? [],
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
    return this.#mux.pods().length === 0 && this.#kubelet.pods().length === 0;
  }

  /** Pods with what the kubelet's API shows of them. */
  nodePods(): NodePod[] {
    return this.#kubelet.pods().flatMap(({ view, status }) => {
      if (view.pod === undefined) return [];
      const over = status?.phase === "Succeeded" || status?.phase === "Failed";
      const ended = view.state.kind === "terminated" || view.state.kind === "finished" || over;
      return [{ pod: view.pod, status, observed: view.status, ended }];
    });
  }

  /** What each subsystem last managed to do and what it waits for. */
  health(): Health["checks"] {
    return this.#kubelet.health();
  }

  /**
   * Reads what `podwright run` was given in earlier lives. To be called before anybody may ask the engine for anything:
   * it would take the pods that it has for new ones.
   */
  async load(): Promise<void> {
    await this.#run?.load();
  }

  /** Runs pods until the signal aborts; they then stay as they are. Rejects only for a defect. */
  async run(signal: AbortSignal): Promise<void> {
    const sources = this.#watched.map((source) => source.run(signal));
    await Promise.all([this.#kubelet.run(signal), this.#cluster?.run(signal), this.#objects?.run(signal), ...sources]);
  }

  /** Removes the node's cgroups when no pod is left in them. */
  async removeCgroups(): Promise<void> {
    await this.#kubelet.removeCgroups();
  }
}

function staticSources(
  { file, http }: NodeSources,
  toMux: (name: SourceName) => SourceDependencies,
  { files, network }: Ports,
): { run(signal: AbortSignal): Promise<void> }[] {
  return [
    ...(file === undefined ? [] : [new FileSource({ ...toMux("file"), files }, file)]),
    ...(http === undefined ? [] : [new HttpSource({ ...toMux("http"), network }, http)]),
  ];
}
