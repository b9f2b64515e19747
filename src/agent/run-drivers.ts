import type { Pod } from "../api/pod.ts";
import { isDriver } from "../claims/local-csi.ts";
import { CsiRoom } from "../csi/csi-room.ts";
import { DriversLast } from "../csi/drivers-last.ts";
import { LocalDrivers } from "../csi/local-drivers.ts";
import { throughOwnDirectory } from "../csi/own-sockets.ts";
import type { ToldPlace } from "../csi/volume-parts.ts";
import { pluginClient } from "../grpc/plugin-client.ts";
import { Collection } from "../objects/collection.ts";
import type { PodRef, Recorder } from "../journal/entry.ts";
import type { Room } from "../kubelet/room.ts";
import { systemLocks } from "../linux/files/lock.ts";
import { shareDirectory } from "../linux/files/shared-directory.ts";
import type { NodeMetrics } from "../metrics/node-metrics.ts";
import { PluginRegistry } from "../plugins/plugin-registry.ts";
import type { Logger } from "../ports/log.ts";
import type { Ports } from "../ports/ports.ts";
import { runWhileTaken } from "../private-runtime/guarded-registry.ts";
import { KubeletPlace, kubeletPlace } from "../private-runtime/kubelet-place.ts";
import { KubeletPlaceGuard } from "../private-runtime/kubelet-place-guard.ts";
import { pluginFindings } from "./plugin-findings.ts";

export interface RunDriversSetup {
  readonly ports: Ports;
  readonly log: Logger;
  readonly metrics: NodeMetrics;
  readonly nodeName: string;
  readonly rootDirectory: string;
  readonly syncFrequencyMs: number;
}

/** CSI drivers with `podwright run`: they run as its pods or on the machine, and find a kubelet in its usual place. */
export class RunDrivers {
  readonly objects = new LocalDrivers();
  readonly place: KubeletPlace;
  readonly #setup: RunDriversSetup;
  #last: DriversLast | undefined;
  #csi: CsiRoom | undefined;

  constructor(setup: RunDriversSetup) {
    const { ports, rootDirectory } = setup;
    const share = (directory: string): Promise<boolean> => shareDirectory(ports.mounts, directory);
    this.place = new KubeletPlace({ ...ports, locks: systemLocks, share }, rootDirectory);
    this.#setup = setup;
  }

  /** Running pods with CSI volumes, if the pod is a driver. */
  served(pod: Pod): readonly PodRef[] {
    return this.#last?.served(pod) ?? [];
  }

  /** Whether a volume that no pod uses any more is still staged: while it is mounted, its data is below the state directory. */
  get isUnstaging(): boolean {
    return (this.#csi?.use.unstaging.length ?? 0) > 0;
  }

  /** Before the place is taken, nothing of the drivers is visible on the machine. */
  rooms(journal: Recorder): readonly Room[] {
    const { ports, log, metrics, ...config } = this.#setup;
    const plugins = pluginClient(ports.clock);
    const called = metrics.csi.called.bind(metrics.csi);
    const csiLog = log.child({ component: "csi" });
    const { place } = this;
    const { clock, files, volumeFiles } = ports;
    const guard = new KubeletPlaceGuard({ clock, files, journal, log: csiLog, place });
    const csi = new CsiRoom(
      {
        ports,
        journal,
        log: csiLog,
        plugins: throughOwnDirectory(plugins, kubeletPlace, config.rootDirectory),
        called,
        observer: metrics.runtime,
        client: undefined,
        driverObjects: new Collection(),
        watch: this.objects.watch,
        place: toldPlace(place, guard),
      },
      { ...config, toldDirectory: kubeletPlace, asksVolumeHealth: false, checksMounts: true },
    );
    this.#csi = csi;
    const registryLog = log.child({ component: "plugins" });
    const onSockets = (sockets: PluginRegistry["sockets"]): void => {
      metrics.csi.plugins(sockets);
      guard.lookSoon();
    };
    const registry = new PluginRegistry(
      { clock, files, volumeFiles, journal, plugins, log: registryLog, handlers: [csi.handler], onSockets },
      `${kubeletPlace}/plugins_registry`,
    );
    const last = new DriversLast({ clock, journal, serves: isDriver, use: () => csi.use });
    this.#last = last;
    const plugged: Room = {
      run: (signal) => runWhileTaken(registry, place, guard, signal),
      findings: () => pluginFindings(registry.refused),
    };
    return [csi, last, plugged, guardRoom(guard)];
  }
}

function toldPlace(place: KubeletPlace, guard: KubeletPlaceGuard): ToldPlace {
  return {
    get problem() {
      return guard.problem;
    },
    get taken() {
      return place.taken;
    },
    need: () => place.need(),
  };
}

function guardRoom(guard: KubeletPlaceGuard): Room {
  const remedy = "stop that agent, or the pods with CSI drivers and volumes; those that run continue";
  return {
    run: (signal) => guard.run(signal),
    findings: () => {
      const detail = guard.problem;
      return detail === undefined ? [] : [{ name: "csi", ok: true, warning: true, detail, remedy }];
    },
  };
}
