import { WatchNews } from "../api-client/watch-news.ts";
import type { PodUid } from "../base/ids.ts";
import type { Journal } from "../journal/journal.ts";
import type { KubeletConfig } from "../kubelet/config.ts";
import type { KubeletDependencies } from "../kubelet/dependencies.ts";
import { Kubelet } from "../kubelet/kubelet.ts";
import { lastKnownPods } from "../pods/last-known-pods.ts";
import type { ObjectLookup } from "../runtime/config/environment.ts";
import { PodMux } from "../sources/mux.ts";
import type { PodUpdate, SourceName, SourceState } from "../sources/source.ts";
import { ClusterLink } from "./cluster-link.ts";
import { ClusterObjects } from "./cluster-objects.ts";
import { Cluster, type ClusterSetup } from "./cluster.ts";

export interface NodePartsDependencies extends Omit<
  KubeletDependencies,
  "journal" | "objects" | "sourcesReady" | "cluster"
> {
  readonly journal: Pick<Journal, "record" | "follow">;
  /** Told of each pod of which nothing is left. */
  readonly onPodGone: (uid: PodUid) => void;
  /** Told of each change of what is wanted, after everybody else. */
  readonly onUpdate?: ((update: PodUpdate) => void) | undefined;
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
  /** Runs pods, and keeps the node's place in its cluster, until the signal aborts. Rejects only for a defect. */
  readonly run: (signal: AbortSignal) => Promise<void>;
}

/** Puts a kubelet, the merged stream of what is wanted and the node's place in a cluster together. */
export function buildNode(deps: NodePartsDependencies, setup: NodePartsSetup): NodeParts {
  const { ports, cri, journal, log, owns, features, pressure, logOwners, rooms, recorder, observer } = deps;
  const { clock, random, files } = ports;
  const { config, cluster: place, sources } = setup;
  const news = new WatchNews(clock, log);
  const mux = new PodMux({ clock, journal, log }, place === undefined ? sources : [...sources, "api"]);
  const servicesFile = `${config.node.rootDirectory}/podwright/services.json`;
  const objects =
    place && new ClusterObjects({ client: place.client, clock, random, journal, log, news, files, servicesFile });
  const link = objects && new ClusterLink(objects);
  const deliver = (source: SourceName, state: SourceState): void => {
    mux.set(source, state);
    link?.wantedChanged();
  };
  const sourcesReady = (source?: string): boolean => (source === undefined ? mux.allSourcesSeen() : mux.isSeen(source));
  const kubelet = new Kubelet(
    {
      ports,
      cri,
      journal,
      log,
      objects: objects?.lookup ?? setup.objects,
      sourcesReady,
      owns,
      features,
      cluster: link,
      pressure,
      logOwners,
      rooms,
      recorder,
      observer,
    },
    config,
  );
  const lastKnown = async (running: readonly PodUid[]) => await lastKnownPods(files, config.node, running);
  const cluster =
    place &&
    new Cluster(
      {
        clock,
        random,
        journal,
        log,
        news,
        cri,
        kubelet,
        mux,
        pressure,
        problems: (rooms ?? []).flatMap(({ node = [] }) => node),
        lastKnown,
        deliver: (state) => deliver("api", state),
      },
      place,
    );
  if (cluster !== undefined) link?.connect(cluster);
  objects?.connect(kubelet.workers);
  connect({ mux, kubelet, objects, link }, deps);
  return {
    kubelet,
    mux,
    cluster,
    deliver,
    run: async (signal) => {
      await Promise.all([kubelet.run(signal), cluster?.run(signal), objects?.run(signal)]);
    },
  };
}

interface Connected {
  readonly mux: PodMux;
  readonly kubelet: Kubelet;
  readonly objects: ClusterObjects | undefined;
  readonly link: ClusterLink | undefined;
}

function connect(
  { mux, kubelet, objects, link }: Connected,
  { onUpdate, onPodGone }: Pick<NodePartsDependencies, "onUpdate" | "onPodGone">,
): void {
  mux.connect({
    onUpdate: (update) => {
      objects?.wanted(update, kubelet.statuses.hadEnded(update.pod.metadata.uid));
      kubelet.handle(update);
      onUpdate?.(update);
    },
    isListed: (uid) => kubelet.listing.isListed(uid),
    startUp: kubelet.startUp,
  });
  kubelet.workers.onRemoved((uid) => {
    link?.podRemoved(uid);
    onPodGone(uid);
  });
}
