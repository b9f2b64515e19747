import type { Pod } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import { onAbort } from "../base/abort.ts";
import type { StartUp } from "../base/start-up.ts";
import { reportAdoption } from "../pods/adoption.ts";
import type { Pleg } from "../pleg/pleg.ts";
import type { PodChange } from "../pods/pod-change.ts";
import type { PodWorkers } from "../pods/pod-workers.ts";
import type { ProbeManager } from "../prober/probe-manager.ts";
import type { NodeGarbage } from "../runtime/operations/node-garbage.ts";
import { kubeletHealth, plegHealth, type SubsystemHealth } from "../status/health.ts";
import type { StatusManager } from "../status/status-manager.ts";
import type { StorageWait } from "../volumes/storage-waits.ts";
import type { VolumeQuotas } from "../volumes/volume-quotas.ts";
import type { MeasuredVolume } from "../volumes/volume-stats.ts";
import type { KubeletConfig } from "./config.ts";
import { connect } from "./connect.ts";
import type { KubeletDependencies } from "./dependencies.ts";
import type { KnownPods } from "./known-pods.ts";
import type { Manager } from "./manager.ts";
import { buildManagers, type Managers } from "./managers.ts";
import { managerRows } from "./rows.ts";

/** What is known of volumes. */
interface VolumesView {
  readonly measured: (uid: PodUid) => readonly MeasuredVolume[];
  /** Upstream's names of the plugins of a pod's volumes, as far as they are known. */
  readonly plugins: (pod: Pod) => readonly string[];
  /** Whose storage or driver does not answer. */
  readonly silent: () => readonly StorageWait[];
  /** What a volume's directory takes by its quota; undefined: its tree has to be walked. */
  readonly quotaUsage: VolumeQuotas["usage"];
}

/** Runs the pods that are wanted. What its managers are built of is in `managers.ts`; what they do is theirs. */
export class Kubelet {
  readonly pods: KnownPods;
  readonly workers: Pick<
    PodWorkers,
    "wake" | "objectsChanged" | "networkUp" | "plans" | "onEnded" | "onRemoved" | "retryNow"
  >;
  /** The statuses of pods, for publishers. */
  readonly statuses: StatusManager;
  readonly probes: Pick<ProbeManager, "results">;
  readonly garbage: Pick<NodeGarbage, "isReady" | "removeEvicted" | "removedLately" | "removeUnused" | "unused">;
  readonly listing: Pick<Pleg, "isListed" | "listed">;
  readonly startUp: Pick<StartUp, "has" | "when">;
  readonly volumes: VolumesView;
  readonly #deps: KubeletDependencies;
  readonly #managers: Managers;
  readonly #rows: readonly Manager[];

  constructor(deps: KubeletDependencies, config: KubeletConfig) {
    const managers = buildManagers(deps, config);
    const rows = managerRows(deps, config, managers);
    connect(managers, rows, deps);
    this.#deps = deps;
    this.#managers = managers;
    this.#rows = rows;
    this.pods = managers.pods;
    this.workers = managers.workers;
    this.statuses = managers.statuses;
    this.probes = managers.probes;
    this.garbage = managers.garbage;
    this.listing = managers.pleg;
    this.startUp = managers.startUp;
    const { volumes, volumeStats, storageWaits, quotas } = managers.acting;
    this.volumes = {
      measured: (uid) => volumeStats.of(uid),
      plugins: (pod) => volumes.pluginLabels(pod),
      silent: () => storageWaits.hanging,
      quotaUsage: async (...of) => await quotas?.usage(...of),
    };
  }

  /** Takes a change of what is wanted; works before and while it runs. */
  handle(change: PodChange): void {
    this.#managers.identity.handle(change);
  }

  /** A pod that is wanted, as it runs: static pods may keep the UID that another kubelet gave them. */
  resolved(pod: Pod): Pod {
    return this.#managers.identity.resolved(pod);
  }

  /** Runs pods until the signal aborts; they then stay as they are. */
  async run(signal: AbortSignal): Promise<void> {
    const { startUp, pleg, preStops, workers } = this.#managers;
    const { ports, journal, log } = this.#deps;
    using _hooks = onAbort(signal, () => preStops.close());
    await Promise.all(this.#rows.map(async (row) => await row.load?.()));
    workers.start(signal);
    void reportAdoption({ clock: ports.clock, journal, log, startUp, pleg, workers });
    await Promise.all(this.#rows.map(async (row) => await row.run?.(signal)));
    await Promise.all(this.#rows.map(async (row) => await row.close?.()));
  }

  /** Of PLEG alone, for the node's status: what other subsystems tell takes longer the more they have. */
  get plegHealth(): SubsystemHealth {
    return plegHealth(this.#deps.ports.clock.monotonic(), this.#managers.pleg);
  }

  /** What each subsystem last managed to do and what it waits for. */
  health(): SubsystemHealth[] {
    const { pleg, probes, acting, housekeeping } = this.#managers;
    const { ports, cri } = this.#deps;
    const subsystems = {
      pleg,
      probes: probes.activity,
      outstanding: cri.outstanding(),
      volumesLeft: acting.volumes.left,
      silent: acting.storageWaits.hanging,
      quotas: acting.quotas?.problems ?? [],
      others: housekeeping.others,
    };
    const rooms = this.#rows.flatMap((row) => row.findings?.() ?? []);
    return [...kubeletHealth(ports.clock.monotonic(), subsystems), ...rooms];
  }

  /** For a node that ends without pods: removes what they left, and what they shared. */
  async tidyUp(): Promise<void> {
    await this.#managers.housekeeping.removeLeftovers(new AbortController().signal);
    await this.#managers.acting.holdings.tidyUp();
  }
}
