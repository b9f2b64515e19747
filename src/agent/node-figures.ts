import { version } from "../base/version.ts";
import type { KubeletConfiguration } from "../config/defaults.ts";
import { featureStates } from "../config/feature-gates.ts";
import type { NodeFlagValues } from "../config/flags.ts";
import { milliseconds } from "../config/settings.ts";
import { nodeFigures } from "../engine/node-figures.ts";
import { nodeGauges } from "../engine/node-gauges.ts";
import { NodeStats, type StatsSettings } from "../engine/node-stats.ts";
import type { Node } from "../engine/node.ts";
import { countImageRecords } from "../images/image-records.ts";
import type { KubeletConfig } from "../kubelet/config.ts";
import { openStatsFiles } from "../linux/files/stats-files.ts";
import type { ImageRecordCounts } from "../metrics/image-metrics.ts";
import type { NodeMetrics } from "../metrics/node-metrics.ts";
import type { NodeFigures } from "../node-api/stats-routes.ts";
import type { Cri } from "../ports/cri.ts";
import type { Logger } from "../ports/log.ts";
import type { Ports } from "../ports/ports.ts";
import { reportedVersion } from "../config/version-flag.ts";
import { platform } from "./platform.ts";

export interface FiguresParts {
  readonly ports: Ports;
  readonly log: Logger;
  readonly cri: Cri;
  readonly config: KubeletConfig;
  /** `containerd` */
  readonly runtimeName: string;
  readonly metrics: NodeMetrics;
  readonly configuration: KubeletConfiguration;
  readonly flags: NodeFlagValues;
}

/** What a node shows of itself to monitoring, measured on this machine. */
export async function openFigures(parts: FiguresParts, node: Node, signal: AbortSignal): Promise<NodeFigures> {
  const { ports, cri, config, runtimeName, metrics } = parts;
  const files = await openStatsFiles(ports.clock);
  const log = parts.log.child({ room: "stats" });
  const volumeMeasured = (durationMs: number): void => metrics.volumeMeasured(durationMs);
  const deps = { clock: ports.clock, processes: ports.processes, files, cri, log, node, volumeMeasured };
  const stats = new NodeStats(deps, config.node, runtimeName, statsSettings(parts), signal);
  const { rootDirectory: directory } = config.node;
  node.page.measureWith(
    nodeGauges({ clock: ports.clock, files, stats }, { directory, maxPods: parts.configuration.maxPods }),
  );
  metrics.attach({ pods: () => node.counts(), pod: (uid) => node.pod(uid) });
  const facts = {
    nodeName: config.node.nodeName,
    version: reportedVersion(parts.flags.version, version),
    platform,
    cgroupVersion: ports.cgroups.version,
    credentialConfigHash: config.images.credentialPlugins?.configHash,
    features: featureStates(parts.configuration.featureGates),
  };
  const imageRecords = async (): Promise<ImageRecordCounts> => await countImageRecords(ports.files, directory);
  return nodeFigures(
    { stats, metrics, node, files, log, ownPid: ports.processes.ownPid, imageRecords },
    { fileSystems: [config.node.rootDirectory], version: `podwright ${version}`, facts },
  );
}

function statsSettings({ configuration, flags }: FiguresParts): StatsSettings {
  const { kubeletCgroups = "", systemCgroups = "", volumeStatsAggPeriod } = configuration;
  const { runtimeCgroups = "" } = flags;
  return { kubeletCgroups, runtimeCgroups, systemCgroups, volumePeriodMs: milliseconds(volumeStatsAggPeriod) };
}
