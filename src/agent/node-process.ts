import { onAbort } from "../base/abort.ts";
import type { PodUid } from "../base/ids.ts";
import { version } from "../base/version.ts";
import { streamingIdleMs } from "../config/serving.ts";
import type { ClusterSetup } from "../engine/cluster.ts";
import { IdleExit } from "../engine/idle-exit.ts";
import { ImageRoom } from "../engine/image-room.ts";
import { Node, type NodeSources } from "../engine/node.ts";
import type { EvictionManager } from "../eviction/manager.ts";
import { onBrokenInvariant } from "../base/invariant.ts";
import type { Recorder } from "../journal/entry.ts";
import { tellBrokenInvariants } from "./broken-invariants.ts";
import type { ImageCollectorConfig } from "../images/image-collector.ts";
import { Journal } from "../journal/journal.ts";
import type { KubeletConfig } from "../kubelet/config.ts";
import type { Room } from "../kubelet/room.ts";
import { pageAssets } from "../linux/http/page-assets.ts";
import { keepLean, systemHeap } from "../linux/processes/heap.ts";
import { serveUnix } from "../linux/servers/unix-server.ts";
import { measuredCgroups } from "../metrics/cgroup-metrics.ts";
import type { NodeMetrics } from "../metrics/node-metrics.ts";
import { nodeApi, type NodeApiDependencies, registeredRoutes } from "../node-api/routes.ts";
import { type NodeFigures, withFigures } from "../node-api/stats-routes.ts";
import { pageRoutes, withPage } from "../page/routes.ts";
import type { ApiHandler, ApiServer } from "../ports/api-server.ts";
import type { Logger } from "../ports/log.ts";
import type { NodeHandler } from "../ports/node-server.ts";
import type { RuntimeLayout } from "../private-runtime/layout.ts";
import { podsOfOthers, registerRoot, unregisterRoot } from "../private-runtime/node-roots.ts";
import type { FlightRecorder } from "../replay/flight-recorder.ts";
import type { Health } from "../server/local-api.ts";
import { localApiRoutes } from "../server/routes.ts";
import { apiDependencies, type ApiSubject } from "./api-dependencies.ts";
import type { RuntimeConnection } from "./daemon.ts";
import { buildFigures, buildStats } from "./node-figures.ts";
import { buildEvictions, type EvictionSettings } from "./evictions.ts";
import type { AgentPorts } from "./process-start.ts";
import { supervise } from "./supervision.ts";
import { startNotes } from "./start-notes.ts";

export interface NodeProcess {
  readonly ports: AgentPorts;
  readonly layout: RuntimeLayout;
  readonly log: Logger;
  readonly metrics: NodeMetrics;
  readonly recorder: FlightRecorder | undefined;
  readonly runtime: RuntimeConnection;
  readonly config: KubeletConfig;
  readonly subject: ApiSubject;
  readonly sources: NodeSources;
  /** Which pods of the runtime may be removed as orphans. */
  readonly owns: (uid: PodUid) => Promise<boolean>;
  /** Checks known before the node starts, for `podwright doctor`. */
  readonly checks: Health["checks"];
  /** Undefined: standalone. */
  readonly cluster: ClusterSetup | undefined;
  readonly eviction: EvictionSettings;
  /** The node's optional managers. */
  readonly rooms: (journal: Recorder) => readonly Room[];
  /** Settings of the image garbage collection; undefined: none. */
  readonly imageGarbage: ImageCollectorConfig | undefined;
  /** Whether logs of unknown pods are removed. */
  readonly ownsPodLogs: boolean;
  /** Ends the node when it aborts. */
  readonly termination: AbortSignal;
  /** Whether it stops by itself after a while without pods. */
  readonly endsWhenIdle: boolean;
  /** Whether something is left to do without pods, so that it is not idle. */
  readonly hasWork?: () => boolean;
  /** Further tasks while the node runs, until the signal aborts. */
  readonly beside: (node: Node, figures: NodeFigures, signal: AbortSignal, journal: Recorder) => Promise<void>;
}

type NodeEnd = "idle" | "terminated";

/**
 * Runs a node, and answers commands at its socket, until it is idle or asked to stop; returns which. Its pods then keep
 * running. Rejects when the node cannot be served, or for a defect: a partly working node would be worse.
 */
export async function runNode(parts: NodeProcess): Promise<NodeEnd> {
  const { ports, layout, log, metrics, recorder, runtime, config, subject, endsWhenIdle } = parts;
  const { clock, files } = ports;
  const { cri } = runtime;
  const ended = Promise.withResolvers<NodeEnd>();
  using _termination = onAbort(parts.termination, () => ended.resolve("terminated"));
  const stop = new AbortController();
  const journal = await Journal.open({
    files,
    clock,
    directory: layout.journal,
    observe: (entry) => metrics.recorded(entry),
  });
  using _invariants = onBrokenInvariant(tellBrokenInvariants(journal, log));
  const idle = new IdleExit(clock, () => ended.resolve("idle"), parts.hasWork);
  const measured = { ports, log, cri, config, runtime: runtime.info, metrics, subject };
  const stats = buildStats(measured, stop.signal);
  const { rootDirectory } = config.node;
  const registered = registerRoot({ ...ports, log }, rootDirectory);
  const evictions = buildEvictions({ ports, cri, journal, log, node: config.node, stats }, parts.eviction);
  const node = await buildNode(parts, journal, evictions, {
    podGone: () => endsWhenIdle && idle.podGone(),
    exit: () => clock.timer("responses to be sent", 100, () => ended.resolve("terminated")),
  });
  stats.connect(node);
  // Before any of its pods has logs.
  await Promise.all([registered, node.load()]);
  const figures = buildFigures(measured, stats, node);
  const server = await serveEngine(parts, node, figures);
  if (endsWhenIdle) idle.started(node);
  const work = Promise.all([
    node.run(stop.signal),
    keepLean(systemHeap(), clock, stop.signal),
    supervise({ clock, log, manager: ports.serviceManager }, node, stop.signal),
    parts.beside(node, figures, stop.signal, journal),
  ]);
  let reason: NodeEnd;
  try {
    reason = await Promise.race([ended.promise, work.then(() => ended.promise)]);
  } finally {
    // Also when the node fails: otherwise the process would not exit.
    stop.abort(new Error("the engine is stopping"));
    await server.close();
  }
  await work;
  if (reason === "idle") {
    await node.tidyUp();
    await unregisterRoot({ ...ports, log }, rootDirectory);
  }
  await Promise.all([journal.close(), recorder?.close()]);
  return reason;
}

async function buildNode(
  parts: NodeProcess,
  journal: Journal,
  evictions: EvictionManager,
  listeners: { readonly podGone: () => void; readonly exit: () => void },
): Promise<Node> {
  const { ports, log, metrics, recorder, runtime, config, cluster } = parts;
  const cgroups = measuredCgroups(metrics.registry, ports.clock, ports.cgroups);
  const { resolvConf, clusterDomain } = config.node;
  const facts = { resolvConf, clusterDomain, cgroupVersion: ports.cgroups.version };
  const notes = cluster && (await startNotes(ports.files, facts));
  const { rootDirectory } = config.node;
  const { clock, files, statsFiles: disk } = ports;
  const imageParts = { clock, files, disk, cri: runtime.cri, journal, log };
  return new Node(
    {
      ports: { ...ports, cgroups },
      cri: runtime.cri,
      journal,
      log,
      owns: parts.owns,
      onPodGone: listeners.podGone,
      exit: listeners.exit,
      recorder,
      observer: metrics.runtime,
      evictions,
      rooms: parts.rooms(journal),
      images: parts.imageGarbage && new ImageRoom(imageParts, parts.imageGarbage, rootDirectory),
      logOwners: parts.ownsPodLogs ? () => podsOfOthers(ports.files, rootDirectory) : undefined,
      onUpdate: ({ op, pod }) => {
        if (op === "add") metrics.podAdded(pod);
        else if (op === "update") metrics.podChanged(pod);
      },
    },
    {
      version,
      config,
      runtime: runtime.info,
      runtimeEndpoint: runtime.endpoint,
      record: recorder?.path,
      sources: parts.sources,
      checks: parts.checks,
      cluster: cluster && { ...cluster, notes },
    },
  );
}

/** Serves commands at the socket of the state directory. */
async function serveEngine(parts: NodeProcess, node: Node, figures: NodeFigures): Promise<ApiServer> {
  const { ports, log, layout, runtime, config, subject } = parts;
  const { cri, info, endpoint } = runtime;
  const routes = besideKubeletApi(localApiRoutes(node.localApi), apiDependencies({ ports, cri, subject }, node, true));
  const api = withPage(withFigures(figures, ports.compression, routes), pageRoutes(node.page, pageAssets));
  const server = await serveUnix(layout.engineSocket, api, {
    streamingIdleMs: streamingIdleMs(subject.configuration),
    onError: (error, request) => log.error("request failed", { ...request, error: String(error) }),
  });
  const { nodeName } = config.node;
  log.info("engine started", { version, runtime: `${info.name} ${info.version}`, endpoint, node: nodeName });
  return server;
}

/** Podwright's own API below `/v1/`, and the kubelet's: access to the socket allows everything. */
function besideKubeletApi(own: ApiHandler, deps: NodeApiDependencies): NodeHandler {
  // The configuration's switches apply to the network only.
  const kubelet = nodeApi({ ...deps, debugging: true });
  const owns = new Set(registeredRoutes(deps).map(({ name }) => name));
  return async (request) => {
    const [name = ""] = request.path.slice(1).split("/");
    return owns.has(name) ? await kubelet(request) : await own(request);
  };
}
