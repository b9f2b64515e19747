import type { GaugeSample, NodeGauges } from "../page/gauges.ts";
import type { Clock } from "../ports/clock.ts";
import type { StatsFiles } from "../ports/stats-files.ts";
import { StatsCollector } from "../stats/collector.ts";
import type { NodeSample, PodSample } from "../stats/node-sample.ts";
import type { NodeStats } from "./node-stats.ts";

export interface NodeGaugesDependencies {
  readonly clock: Clock;
  readonly files: StatsFiles;
  readonly stats: Pick<NodeStats, "sample">;
}

export interface NodeGaugesSettings {
  /** The file system shown as the disk. */
  readonly directory: string;
  readonly maxPods: number;
}

/** The node page's gauges from the node's statistics; without pods only the machine's own files are read. */
export function nodeGauges(
  { clock, files, stats }: NodeGaugesDependencies,
  { directory, maxPods }: NodeGaugesSettings,
): NodeGauges {
  const machineAlone = new StatsCollector({ clock, files, pods: () => [], system: async () => [] });
  return {
    sample: async (withPods) => {
      const [sample, disk, [processors = ""]] = await Promise.all([
        withPods ? stats.sample("resources") : machineAlone.collect("resources"),
        files.fileSystem(directory).catch(() => undefined),
        files.readTexts(["/proc/stat"]),
      ]);
      const { cpu, memory } = sample.machine.sample;
      return {
        capacity: {
          cpuCores: processors.match(/^cpu\d+ /gm)?.length ?? 1,
          ...(memory?.limit !== undefined && { memoryBytes: memory.limit }),
          ...(disk !== undefined && { diskBytes: disk.capacityBytes }),
          maxPods,
        },
        ...(cpu !== undefined && { cpuSeconds: seconds(cpu.usageNanoseconds) }),
        ...(memory !== undefined && { memoryBytes: memory.workingSet }),
        ...(disk !== undefined && { diskBytes: disk.usedBytes }),
        pods: podAmounts(sample),
      };
    },
  };
}

function podAmounts({ pods }: NodeSample): GaugeSample["pods"] {
  return new Map(pods.map((pod) => [pod.pod.ref.uid, amountsOf(pod)]));
}

function amountsOf({ sample }: PodSample): { readonly cpuSeconds?: number; readonly memoryBytes?: number } {
  return {
    ...(sample?.cpu !== undefined && { cpuSeconds: seconds(sample.cpu.usageNanoseconds) }),
    ...(sample?.memory !== undefined && { memoryBytes: sample.memory.workingSet }),
  };
}

function seconds(nanoseconds: number): number {
  return nanoseconds / 1e9;
}
