import { version } from "../base/version.ts";
import { featureStates } from "../config/feature-gates.ts";
import { milliseconds } from "../config/settings.ts";
import { nodeFigures } from "../engine/node-figures.ts";
import { nodeGauges } from "../engine/node-gauges.ts";
import { NodeStats, type StatsSettings } from "../engine/node-stats.ts";
import type { Node } from "../engine/node.ts";
import { countImageRecords } from "../images/image-records.ts";
import type { KubeletConfig } from "../kubelet/config.ts";
import type { ImageRecordCounts } from "../metrics/image-metrics.ts";
import type { NodeMetrics } from "../metrics/node-metrics.ts";
import type { NodeFigures } from "../node-api/stats-routes.ts";
import type { Cri } from "../ports/cri.ts";
import type { Logger } from "../ports/log.ts";
import type { RuntimeInfo } from "../runtime-service/features.ts";
import { reportedVersion } from "../config/version-flag.ts";
import type { ApiSubject } from "./api-dependencies.ts";
import { platform } from "./platform.ts";
import type { AgentPorts } from "./process-start.ts";

/** The release of Kubernetes whose kubelet takes the cgroup driver from the runtime alone (KEP-4033). */
const runtimeConfigRequired = "1.37.0";

export interface FiguresParts {
  readonly ports: AgentPorts;
  readonly log: Logger;
  readonly cri: Cri;
  readonly config: KubeletConfig;
  readonly runtime: Pick<RuntimeInfo, "name" | "hasRuntimeConfig">;
  readonly metrics: NodeMetrics;
  readonly subject: ApiSubject;
}

/** Measures a node and its pods on this machine. @param signal ends a measurement */
export function buildStats(parts: FiguresParts, signal: AbortSignal): NodeStats {
  const { ports, cri, config, runtime, metrics } = parts;
  const { clock, processes, statsFiles: files } = ports;
  const log = parts.log.child({ component: "stats" });
  const volumeMeasured = (durationMs: number): void => metrics.runtime.volumeMeasured("du", durationMs);
  const deps = { clock, processes, files, cri, log, volumeMeasured };
  return new NodeStats(deps, config.node, runtime.name, statsSettings(parts.subject), signal);
}

/** The node's monitoring endpoints. */
export function buildFigures(parts: FiguresParts, stats: NodeStats, node: Node): NodeFigures {
  const { ports, config, metrics, subject, runtime } = parts;
  const { clock, statsFiles: files } = ports;
  const { configuration, flags } = subject;
  const { rootDirectory: directory, nodeName } = config.node;
  node.page.measureWith(nodeGauges({ clock, files, stats }, { directory, maxPods: configuration.maxPods }));
  metrics.attach({ pods: () => node.counts(), pod: (uid) => node.pod(uid) });
  const facts = {
    nodeName,
    version: reportedVersion(flags.version, version),
    platform,
    cgroupVersion: ports.cgroups.version,
    runtimeUnsupportedFrom: runtime.hasRuntimeConfig ? undefined : runtimeConfigRequired,
    credentialConfigHash: config.images.credentialPlugins?.configHash,
    features: featureStates(configuration.featureGates),
  };
  const imageRecords = async (): Promise<ImageRecordCounts> => await countImageRecords(ports.files, directory);
  const log = parts.log.child({ component: "stats" });
  return nodeFigures(
    { stats, metrics, node, files, log, ownPid: ports.processes.ownPid, imageRecords },
    { fileSystems: [directory], version: `podwright ${version}`, facts },
  );
}

function statsSettings({ configuration, flags }: ApiSubject): StatsSettings {
  const { kubeletCgroups = "", systemCgroups = "", volumeStatsAggPeriod } = configuration;
  const { runtimeCgroups = "" } = flags;
  return { kubeletCgroups, runtimeCgroups, systemCgroups, volumePeriodMs: milliseconds(volumeStatsAggPeriod) };
}
