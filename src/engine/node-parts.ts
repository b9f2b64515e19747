import { WatchNews } from "../api-client/watch-news.ts";
import { podUid } from "../base/ids.ts";
import type { Cause } from "../journal/entry.ts";
import type { Journal } from "../journal/journal.ts";
import { Kubelet, type KubeletConfig, type KubeletDependencies } from "../kubelet/kubelet.ts";
import type { ClusterHooks } from "../pods/cluster-hooks.ts";
import { lastKnownPods } from "../pods/last-known-pods.ts";
import { withDeadlines } from "../runtime-service/deadlines.ts";
import type { ObjectLookup } from "../runtime/config/environment.ts";
import { PodMux } from "../sources/mux.ts";
import type { PodUpdate, SourceName, SourceState } from "../sources/source.ts";
import type { ChangedObject } from "../api/referenced-objects.ts";
import { ClusterObjects } from "./cluster-objects.ts";
import { Cluster, type ClusterSetup } from "./cluster.ts";

export interface NodePartsDependencies extends Omit<
  KubeletDependencies,
  "journal" | "objects" | "sourcesReady" | "cluster"
> {
  readonly journal: Pick<Journal, "record" | "follow">;
  /** Told of each pod of which nothing is left. */
  readonly onPodGone: (uid: string) => void;
  /** Told of each change of what is wanted, after everybody else. */
  readonly onUpdate?: (update: PodUpdate) => void;
}

export interface NodePartsSetup {
  readonly config: KubeletConfig;
  /** Sources besides the API server; it is one where there is a cluster. */
  readonly sources: readonly SourceName[];
  /** Of a node without a cluster: ConfigMaps and Secrets. */
  readonly objects: ObjectLookup;
  /** Undefined: the node stands alone. */
  readonly cluster: ClusterSetup | undefined;
}

/** What belongs to every node, however it is reached and wherever its manifests come from. */
export interface NodeParts {
  readonly kubelet: Kubelet;
  readonly mux: PodMux;
  readonly cluster: Cluster | undefined;
  /** Takes what a source wants. */
  readonly deliver: (source: SourceName, state: SourceState) => void;
  readonly objectsChanged: (objects: readonly ChangedObject[], cause: Cause) => void;
  /** Runs pods, and keeps the node's place in its cluster, until the signal aborts. Rejects only for a defect. */
  readonly run: (signal: AbortSignal) => Promise<void>;
}

/** Puts a kubelet, the merged stream of what is wanted and the node's place in a cluster together. */
export function buildNode(deps: NodePartsDependencies, setup: NodePartsSetup): NodeParts {
  const { ports, journal, log } = deps;
  const { clock, random } = ports;
  const objectsChanged = (changed: readonly ChangedObject[], cause: Cause): void =>
    kubelet.objectsChanged(changed, cause);
  const news = new WatchNews(clock, log);
  const watching = { clock, random, journal, log, news };
  const servicesFile = `${setup.config.node.rootDirectory}/podwright/services.json`;
  const remembering = { files: ports.files, servicesFile };
  const telling = { objectsChanged, wake: (uid: string, cause: Cause) => kubelet.wake(uid, cause) };
  const objects =
    setup.cluster && new ClusterObjects({ ...watching, ...remembering, ...telling, client: setup.cluster.client });
  const onUpdate = (update: PodUpdate): void => {
    objects?.wanted(update, kubelet.statuses.hadEnded(update.pod.metadata.uid));
    kubelet.handle(update);
    deps.onUpdate?.(update);
  };
  const names: SourceName[] = setup.cluster === undefined ? [...setup.sources] : [...setup.sources, "api"];
  const mux = new PodMux(
    { clock, journal, log: deps.log, onUpdate, isListed: (uid) => kubelet.listing.isListed(podUid(uid)) },
    names,
  );
  const deliver = (source: SourceName, state: SourceState): void => {
    mux.set(source, state);
    cluster?.wantedChanged();
  };
  const kubelet = new Kubelet(
    {
      ...deps,
      objects: objects?.lookup ?? setup.objects,
      sourcesReady: (source) => (source === undefined ? mux.allSourcesSeen() : mux.isSeen(source)),
      ...(setup.cluster && { cluster: hooksOf(() => cluster, objects) }),
    },
    setup.config,
    (uid) => {
      objects?.released(uid);
      cluster?.wantedChanged();
      deps.onPodGone(uid);
    },
  );
  void kubelet.listing.firstListing.then(() => mux.runtimeListed());
  // A call that hangs must not keep the node from saying how it is.
  const cri = withDeadlines(deps.cri, clock, setup.config.runtimeRequestTimeoutMs);
  const cluster =
    setup.cluster &&
    new Cluster(
      {
        ...watching,
        ...{ cri, kubelet, mux, pressure: deps.pressure },
        lastKnown: (running) => lastKnownPods(ports.files, setup.config.node, running),
        deliver: (state) => deliver("api", state),
      },
      setup.cluster,
    );
  return {
    kubelet,
    mux,
    cluster,
    deliver,
    objectsChanged,
    run: async (signal) => {
      await Promise.all([kubelet.run(signal), cluster?.run(signal), objects?.run(signal)]);
    },
  };
}

/** What the kubelet asks of its cluster, and tells it. */
function hooksOf(cluster: () => Cluster | undefined, objects: ClusterObjects | undefined): ClusterHooks {
  return {
    unsupported: (pod) => cluster()?.unsupported(pod) ?? "",
    place: () => cluster()?.place(),
    refreshPlace: async () => cluster()?.refreshPlace(),
    runtime: () => cluster()?.runtime(),
    networkProblem: () => cluster()?.networkProblem(),
    podReleased: (uid) => {
      objects?.released(uid);
      cluster()?.podReleased(uid);
    },
  };
}
