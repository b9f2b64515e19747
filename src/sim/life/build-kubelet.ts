import type { ApiClient } from "../../api-client/client.ts";
import { buildNode } from "../../engine/node-parts.ts";
import type { Pod } from "../../api/pod.ts";
import type { Recorder } from "../../journal/entry.ts";
import type { KubeletConfig } from "../../kubelet/config.ts";
import type { KubeletDependencies } from "../../kubelet/dependencies.ts";
import { Kubelet } from "../../kubelet/kubelet.ts";
import type { Cri } from "../../ports/cri.ts";
import { type TrackedCri, withDeadlines } from "../../runtime-service/deadlines.ts";
import type { ObjectLookup } from "../../runtime/config/environment.ts";
import type { PodUpdate } from "../../sources/source.ts";
import { SimKubeConnection } from "../api-server/connection.ts";
import { simApiClient, simClusterSetup } from "./cluster-setup.ts";
import { SimClaims } from "./sim-claims.ts";
import type { SimCluster } from "./cluster.ts";
import { SimFollowers } from "./sim-journal.ts";

/** The connections of one run of podwright to the simulated machine. */
export interface Surroundings extends Omit<KubeletDependencies, "journal" | "sourcesReady" | "cri"> {
  readonly cri: Cri;
  readonly record: Recorder["record"];
  readonly config: KubeletConfig;
  readonly objects: ObjectLookup;
}

/** A kubelet, standalone or with its cluster parts. */
export interface Built {
  readonly kubelet: Kubelet;
  readonly run: (signal: AbortSignal) => Promise<void>;
  /** Undefined: standalone, with pods added directly. */
  readonly deliverStatics?: () => void;
  readonly api?: SimKubeConnection;
  readonly followers?: SimFollowers;
}

/** runtimeRequestTimeout. */
const requestTimeoutMs = 120_000;

function tracked({ cri, ports, observer }: Pick<Surroundings, "cri" | "ports" | "observer">): TrackedCri {
  return withDeadlines(cri, ports.clock, requestTimeoutMs, observer);
}

/** The manifests of a standalone node. */
export interface Manifests {
  /** All have been read. */
  readonly isRead: () => boolean;
  readonly desired: () => Iterable<Pod>;
}

export function buildAlone({ record, config, ...deps }: Surroundings, { isRead, desired }: Manifests): Built {
  const present = (): Pod[] => kubelet.pods.list().flatMap(({ view }) => view.pod ?? []);
  const claims = new SimClaims(deps.ports, { record }, () => [...desired(), ...present()]);
  const parts = { cri: tracked(deps), journal: { record }, sourcesReady: isRead, volumes: claims.volumes };
  const kubelet = new Kubelet({ ...deps, ...parts }, config);
  const run = async (signal: AbortSignal): Promise<void> => {
    await Promise.all([kubelet.run(signal), claims.run(kubelet, signal)]);
  };
  return { kubelet, run };
}

export interface ClusterPlace {
  readonly cluster: SimCluster;
  readonly api: SimKubeConnection;
  readonly client: ApiClient;
  readonly onUpdate: (update: PodUpdate) => void;
}

/** A run's connection to the API server. */
interface PlaceParts extends Omit<ConstructorParameters<typeof SimKubeConnection>[0], "server" | "seen"> {
  readonly onUpdate: ClusterPlace["onUpdate"];
}

export function clusterPlace(cluster: SimCluster, { onUpdate, ...parts }: PlaceParts): ClusterPlace {
  const { server, seen } = cluster;
  const api = new SimKubeConnection({ server, seen, ...parts });
  return { cluster, api, client: simApiClient(api, parts.clock), onUpdate };
}

export function buildInCluster(
  { record, config, objects, ...deps }: Surroundings,
  { cluster, api, client, onUpdate }: ClusterPlace,
): Built {
  const followers = new SimFollowers();
  const journal = { record, follow: (_filter: unknown, signal: AbortSignal) => followers.follow(signal) };
  const { kubelet, run, deliver } = buildNode(
    { ...deps, cri: tracked(deps), journal, onPodGone: () => {}, onUpdate },
    { config, sources: ["file"], objects, cluster: simClusterSetup(client, deps.handlers) },
  );
  const deliverStatics = (): void => {
    const pods = cluster.statics().map((pod) => ({ pod, place: `manifest of ${pod.metadata.name}` }));
    deliver("file", { pods, complete: true });
  };
  return { kubelet, run, deliverStatics, api, followers };
}
