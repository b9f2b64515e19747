import { WatchNews } from "../api-client/watch-news.ts";
import type { NodeObject } from "../api/node.ts";
import type { PodUid } from "../base/ids.ts";
import type { Journal } from "../journal/journal.ts";
import type { KubeletConfig } from "../kubelet/config.ts";
import type { KubeletDependencies } from "../kubelet/dependencies.ts";
import { Kubelet } from "../kubelet/kubelet.ts";
import { NodeVolumes } from "../node/node-volumes.ts";
import type { Room } from "../kubelet/room.ts";
import { lastKnownPods } from "../pods/last-known-pods.ts";
import type { StorageLookup } from "../objects/storage-lookup.ts";
import type { ObjectLookup } from "../runtime/config/environment.ts";
import { PodMux } from "../sources/mux.ts";
import type { PodUpdate, SourceChange, SourceName, SourceState } from "../sources/source.ts";
import type { ClusterVolumes } from "../volumes/volume-manager.ts";
import { ClusterLink } from "./cluster-link.ts";
import { ClusterObjects } from "./cluster-objects.ts";
import { Cluster, type ClusterSetup } from "./cluster.ts";

export interface NodePartsDependencies extends Omit<
  KubeletDependencies,
  "journal" | "objects" | "sourcesReady" | "cluster"
> {
  readonly journal: Pick<Journal, "record" | "follow">;
  /** Called with each removed pod. */
  readonly onPodGone: (uid: PodUid) => void;
  /** Called for each change of the desired pods, after all others. */
  readonly onUpdate?: ((update: PodUpdate) => void) | undefined;
}

export interface NodePartsSetup {
  readonly config: KubeletConfig;
  /** Sources besides the API server; which is one in a cluster. */
  readonly sources: readonly SourceName[];
  /** Of a node without a cluster: ConfigMaps and Secrets. */
  readonly objects: ObjectLookup;
  /** Of a node without a cluster: claims; undefined: it has none. */
  readonly claims?: LocalClaims | undefined;
  /** Undefined: standalone. */
  readonly cluster: ClusterSetup | undefined;
}

/** Claims without a cluster. */
export interface LocalClaims {
  readonly storage: StorageLookup;
  readonly nodeLabels: Readonly<Record<string, string>>;
}

/** The parts of every node, whatever its sources and connections. */
export interface NodeParts {
  readonly kubelet: Kubelet;
  readonly mux: PodMux;
  readonly cluster: Cluster | undefined;
  /** Receives the pods of a source. */
  readonly deliver: (source: SourceName, state: SourceState) => void;
  /** Runs pods, and the cluster connection, until the signal aborts. Rejects only for a defect. */
  readonly run: (signal: AbortSignal) => Promise<void>;
}

/** What sources hand over what they want to. */
function receivers(mux: PodMux, link: ClusterLink | undefined) {
  const changed = (): void => link?.wantedChanged();
  return {
    deliver: (source: SourceName, state: SourceState): void => {
      mux.set(source, state);
      changed();
    },
    change: (source: SourceName, change: SourceChange): void => {
      mux.change(source, change);
      changed();
    },
  };
}

/** Connects a kubelet, the merged sources and the cluster. */
export function buildNode(deps: NodePartsDependencies, setup: NodePartsSetup): NodeParts {
  const { ports, cri, journal, log, owns, handlers, pressure, logOwners, rooms, recorder, observer } = deps;
  const { clock, random, files } = ports;
  const { config, cluster: place, sources } = setup;
  const news = new WatchNews(clock, log);
  const mux = new PodMux({ clock, journal, log }, place === undefined ? sources : [...sources, "api"]);
  const servicesFile = `${config.node.rootDirectory}/podwright/services.json`;
  const objects =
    place && new ClusterObjects({ client: place.client, clock, random, journal, log, news, files, servicesFile });
  const link = objects && new ClusterLink(objects);
  const volumes = new NodeVolumes();
  const { deliver, change } = receivers(mux, link);
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
      handlers,
      cluster: link,
      volumes:
        place && objects ? clusterVolumes(place, { objects, volumes, link }) : localVolumes(setup.claims, volumes),
      api: objects?.access,
      pressure,
      logOwners,
      rooms,
      recorder,
      observer,
    },
    config,
  );
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
        volumes,
        problems: (rooms ?? []).flatMap(({ node = [] }) => node),
        lastKnown: (running) => lastKnownPods(files, config.node, running),
        deliver: (state) => deliver("api", state),
        change: (one) => change("api", one),
      },
      { ...place, onRegistered: registeredIn(place, rooms ?? []) },
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

interface VolumeParts {
  readonly objects: ClusterObjects;
  readonly volumes: NodeVolumes;
  readonly link: ClusterLink | undefined;
}

function clusterVolumes({ node }: ClusterSetup, { objects, volumes, link }: VolumeParts): ClusterVolumes {
  return {
    storage: objects.storage,
    node: volumes,
    labels: () => link?.place()?.labels,
    byController: node.registration.controllerAttaches,
  };
}

/** On a node without a cluster nothing is attached. */
function localVolumes(claims: LocalClaims | undefined, node: NodeVolumes): ClusterVolumes | undefined {
  return claims && { storage: claims.storage, node, labels: () => claims.nodeLabels, byController: false };
}

function registeredIn(place: ClusterSetup, rooms: readonly Room[]): (node: NodeObject) => void {
  return (node) => {
    place.onRegistered?.(node);
    for (const room of rooms) room.registered?.(node);
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
