import { CsiRoom } from "../csi/csi-room.ts";
import { LocalDrivers } from "../csi/local-drivers.ts";
import { orAborted } from "../base/abort.ts";
import { pluginClient } from "../grpc/plugin-client.ts";
import { Collection } from "../objects/collection.ts";
import type { Recorder } from "../journal/entry.ts";
import type { Room } from "../kubelet/room.ts";
import { systemLocks } from "../linux/files/lock.ts";
import { shareDirectory } from "../linux/files/shared-directory.ts";
import type { NodeMetrics } from "../metrics/node-metrics.ts";
import { PluginRegistry } from "../plugins/plugin-registry.ts";
import type { Logger } from "../ports/log.ts";
import type { Ports } from "../ports/ports.ts";
import { KubeletPlace, kubeletPlace } from "../private-runtime/kubelet-place.ts";

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

  constructor(setup: RunDriversSetup) {
    const { ports, rootDirectory } = setup;
    const share = (directory: string): Promise<boolean> => shareDirectory(ports.mounts, directory);
    this.place = new KubeletPlace({ ...ports, locks: systemLocks, share }, rootDirectory);
    this.#setup = setup;
  }

  /** Before the place is taken, nothing of the drivers is visible on the machine. */
  rooms(journal: Recorder): readonly Room[] {
    const { ports, log, metrics, ...config } = this.#setup;
    const plugins = pluginClient(ports.clock);
    const called = metrics.csi.called.bind(metrics.csi);
    const csiLog = log.child({ component: "csi" });
    const csi = new CsiRoom(
      {
        ports,
        journal,
        log: csiLog,
        plugins,
        called,
        client: undefined,
        driverObjects: new Collection(),
        watch: this.objects.watch,
      },
      { ...config, toldDirectory: kubeletPlace, asksVolumeHealth: false, checksMounts: true },
    );
    const { clock, files, volumeFiles } = ports;
    const registryLog = log.child({ component: "plugins" });
    const onSockets = metrics.csi.plugins.bind(metrics.csi);
    const registry = new PluginRegistry(
      { clock, files, volumeFiles, journal, plugins, log: registryLog, handlers: [csi.handler], onSockets },
      `${kubeletPlace}/plugins_registry`,
    );
    const { taken } = this.place;
    const run = async (signal: AbortSignal): Promise<void> => {
      await orAborted(taken, signal);
      if (!signal.aborted) await registry.run(signal);
    };
    return [csi, { run }];
  }
}
