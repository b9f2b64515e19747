import { onAbort } from "../base/abort.ts";
import type { PodUid } from "../base/ids.ts";
import { version } from "../base/version.ts";
import type { ClusterSetup } from "../engine/cluster.ts";
import { IdleExit } from "../engine/idle-exit.ts";
import { Node, type NodeSources } from "../engine/node.ts";
import type { PressureMonitorConfig } from "../eviction/pressure-monitor.ts";
import type { JournalInput, Recorder } from "../journal/entry.ts";
import { Journal } from "../journal/journal.ts";
import type { KubeletConfig } from "../kubelet/config.ts";
import { streamingIdleMs } from "../config/serving.ts";
import { nodeApi, type NodeApiDependencies, registeredRoutes } from "../node-api/routes.ts";
import type { ApiHandler } from "../ports/api-server.ts";
import type { NodeHandler } from "../ports/node-server.ts";
import { keepLean, systemHeap } from "../linux/processes/heap.ts";
import { pageAssets } from "../linux/http/page-assets.ts";
import { serveUnix } from "../linux/servers/unix-server.ts";
import { measuredCgroups } from "../metrics/cgroup-metrics.ts";
import type { NodeMetrics } from "../metrics/node-metrics.ts";
import { type NodeFigures, withFigures } from "../node-api/stats-routes.ts";
import type { Logger } from "../ports/log.ts";
import type { Ports } from "../ports/ports.ts";
import type { RuntimeLayout } from "../private-runtime/layout.ts";
import type { FlightRecorder } from "../replay/flight-recorder.ts";
import type { TrackedCri } from "../runtime-service/deadlines.ts";
import type { RuntimeInfo } from "../runtime-service/features.ts";
import { pageRoutes, withPage } from "../page/routes.ts";
import type { Health } from "../server/engine.ts";
import { engineRoutes } from "../server/routes.ts";
import { apiDependencies, type ApiSubject } from "./api-dependencies.ts";
import { openFigures } from "./node-figures.ts";
import { openPressure } from "./node-pressure.ts";
import { startNotes } from "./start-notes.ts";

export interface NodeProcess {
  readonly ports: Ports;
  readonly layout: RuntimeLayout;
  readonly log: Logger;
  /** With deadlines. */
  readonly cri: TrackedCri;
  readonly runtime: RuntimeInfo;
  readonly runtimeEndpoint: string;
  readonly config: KubeletConfig;
  readonly sources: NodeSources;
  /** What is known of the node before it starts, for `podwright doctor`. */
  readonly checks?: Health["checks"];
  /** Undefined: the node stands alone. */
  readonly cluster?: ClusterSetup;
  /** Which pods of the runtime may be removed when no source wants them. */
  readonly owns: (uid: PodUid) => Promise<boolean>;
  /** Ends the node when it aborts. */
  readonly told: AbortSignal;
  /** Whether it ends by itself once it has had no pod for a while. */
  readonly endsWhenIdle: boolean;
  readonly recorder: FlightRecorder | undefined;
  readonly subject: ApiSubject;
  readonly metrics: NodeMetrics;
  /** When the node is under pressure; undefined: never. */
  readonly pressure?: PressureMonitorConfig;
  /** What else runs while the node does, until the signal aborts. */
  readonly beside?: (node: Node, figures: NodeFigures, signal: AbortSignal, journal: Recorder) => Promise<void>;
}

/**
 * Runs a node, and answers commands at its socket, until it is idle or told to end; says which. Its pods go on running
 * then. Rejects when the node can't be served, or for a defect: better no node than half of one.
 */
export async function runNode(parts: NodeProcess): Promise<"idle" | "told"> {
  const { ports, layout, log, runtime, runtimeEndpoint, endsWhenIdle, metrics } = parts;
  const { clock, files } = ports;
  const ended = Promise.withResolvers<"idle" | "told">();
  using _told = onAbort(parts.told, () => ended.resolve("told"));
  const observe = (entry: JournalInput): void => metrics.recorded(entry);
  const journal = await Journal.open({ files, clock, directory: layout.journal, observe });
  const idle = new IdleExit(
    clock,
    () => node.isEmpty,
    () => ended.resolve("idle"),
  );
  const facts = { ...parts.config.node, cgroupVersion: ports.cgroups.version };
  const cluster = parts.cluster && { ...parts.cluster, notes: await startNotes(files, facts) };
  const pressure = parts.pressure && (await openPressure(parts, parts.pressure, journal));
  const node: Node = new Node(
    {
      ...parts,
      pressure,
      ports: { ...ports, cgroups: measuredCgroups(metrics.registry, clock, ports.cgroups) },
      journal,
      observer: metrics.runtime,
      onUpdate: ({ op, pod }) => {
        if (op === "add") metrics.podAdded(pod);
        else if (op === "update") metrics.podChanged(pod);
      },
      onPodGone: () => endsWhenIdle && idle.podGone(),
      exit: () => clock.timer("answers to go out", 100, () => ended.resolve("told")),
    },
    { ...parts, ...(cluster && { cluster }), version, record: parts.recorder?.path },
  );
  await node.load();
  const stop = new AbortController();
  const measured = { ...parts, ...parts.subject, metrics, runtimeName: runtime.name };
  const figures = await openFigures(measured, node, stop.signal);
  const engineApi = localApi(engineRoutes(node.engine), apiDependencies({ ...parts, ...parts.subject }, node, true));
  const api = withPage(withFigures(figures, ports.compression, engineApi), pageRoutes(node.page, pageAssets));
  const server = await serveUnix(layout.engineSocket, api, {
    streamingIdleMs: streamingIdleMs(parts.subject.configuration),
    onError: (error, request) => log.error("request failed", { ...request, error: String(error) }),
  });
  log.info("engine started", {
    version,
    runtime: `${runtime.name} ${runtime.version}`,
    endpoint: runtimeEndpoint,
    node: parts.config.node.nodeName,
  });
  if (endsWhenIdle) idle.started();
  const heap = systemHeap();
  const work = Promise.all([
    node.run(stop.signal),
    keepLean(heap, clock, stop.signal),
    pressure?.run(stop.signal),
    parts.beside?.(node, figures, stop.signal, journal),
  ]);
  const reason = await Promise.race([ended.promise, work.then(() => ended.promise)]);
  stop.abort(new Error("the engine ends"));
  await server.close();
  await work;
  if (reason === "idle") await node.tidyUp();
  await Promise.all([journal.close(), parts.recorder?.close()]);
  return reason;
}

/** Podwright's own API below `/v1/`, and beside it the kubelet's: who may open the socket may do everything. */
function localApi(engine: ApiHandler, deps: NodeApiDependencies): NodeHandler {
  // The switches of the configuration are about the network.
  const kubelet = nodeApi({ ...deps, debugging: true });
  const owns = new Set(registeredRoutes(deps).map(({ name }) => name));
  return async (request) => {
    const [name = ""] = request.path.slice(1).split("/");
    return owns.has(name) ? await kubelet(request) : await engine(request);
  };
}
