import { AcceptedEvictions } from "../../eviction/accepted-evictions.ts";
import type { EvictionTerms } from "../../eviction/eviction-terms.ts";
import { EvictionManager } from "../../eviction/manager.ts";
import type { Pod } from "../../api/pod.ts";
import type { PodUsageReader, VolumeUsage as VolumeUsageOfPod } from "../../eviction/pod-usage.ts";
import type { KubeletConfig } from "../../kubelet/config.ts";
import type { Kubelet } from "../../kubelet/kubelet.ts";
import type { VolumeStats } from "../../stats/summary-types.ts";
import { VolumeUsage } from "../../stats/volume-usage.ts";
import type { Gate } from "../gate.ts";
import type { SimProjectQuotas } from "../project-quotas.ts";
import { silentLog } from "../machine.ts";
import type { SimMachineResources } from "../machine-resources.ts";
import type { Surroundings } from "./build-kubelet.ts";
import type { SimEvictionConfig } from "./node-settings.ts";

/** volumeStatsAggPeriod. */
const volumePeriodMs = 60_000;

interface SimEvictionParts {
  readonly machine: {
    readonly config: KubeletConfig;
    readonly quotas: SimProjectQuotas;
    readonly resources: SimMachineResources;
  };
  /** The kubelet's. */
  readonly volumes: () => Pick<Kubelet["volumes"], "quotaUsage">;
  readonly gate: Gate;
}

/** What a simulated node's settings evict. */
export function simTerms({ thresholds, enforcesStorageLimits }: SimEvictionConfig): EvictionTerms {
  return { thresholds, enforcesStorageLimits, countsMemAvailable: false, reservedMemoryBytes: 0 };
}

/** The eviction manager of a simulated run. */
export function simEvictions(
  { record, ports: { clock, files } }: Pick<Surroundings, "record" | "ports">,
  { machine: { resources, quotas, config: kubelet }, volumes: ofKubelet, gate }: SimEvictionParts,
  config: SimEvictionConfig,
): EvictionManager {
  const { rootDirectory } = kubelet.node;
  const machine = gate.through(resources, "machine", ["used", "left"]);
  const accepted = new AcceptedEvictions(
    { files, log: silentLog, directory: `${rootDirectory}/podwright` },
    simTerms(config),
    config.asks,
  );
  const look = async (): ReturnType<SimMachineResources["look"]> => {
    const seen = await machine.look();
    // An observation takes time to arrive.
    await gate.waitForDisk();
    return seen;
  };
  const disk = gate.through(quotas, "plain");
  const trees = { treeUsage: (path: string) => disk.walk(path), fileSystem: async () => undefined };
  const never = new AbortController().signal;
  const quotaUsage: Kubelet["volumes"]["quotaUsage"] = async (...of) => await ofKubelet().quotaUsage(...of);
  const settings = { rootDirectory, periodMs: volumePeriodMs };
  const volumes = new VolumeUsage({ clock, files: trees, quotaUsage }, settings, never);
  const usage: PodUsageReader = {
    readRunning: async (pods) => await machine.readRunning(pods),
    onMeasured: () => resources.onMeasured(),
    layersLeft: async (containers) => await machine.layersLeft(containers),
    async readStorage(pods, how) {
      const usages = new Map(await machine.readStorage(pods, how));
      for (const pod of pods.filter(hasSizedVolume)) {
        const { uid } = pod.metadata;
        const known = usages.get(uid);
        const { stats, measuredMs } = await volumes.of(pod, how === "anew");
        const own = { volumes: stats.map(volumeUsage), volumesMs: measuredMs };
        if (known !== undefined) usages.set(uid, { ...known, ...own });
      }
      return usages;
    },
  };
  const deps = { clock, journal: { record }, log: silentLog, look, usage, accepted };
  return new EvictionManager(deps, config);
}

function hasSizedVolume({ spec }: Pod): boolean {
  return spec.volumes?.some(({ emptyDir }) => emptyDir?.sizeLimit !== undefined) ?? false;
}

/** For volumes' own limits only: what counts for the ranking is assigned to pods. */
function volumeUsage({ name, usedBytes = 0, inodesUsed = 0 }: VolumeStats): VolumeUsageOfPod {
  return { name, bytes: usedBytes, inodes: inodesUsed, isLocal: false };
}
