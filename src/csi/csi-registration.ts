import type { PluginHandler, PluginInfo } from "../plugins/plugin-handler.ts";
import type { DriverOnNode } from "./csi-node-object.ts";
import { compareVersions, highestVersion } from "./driver-version.ts";
import type { DriverStore } from "./driver-store.ts";
import { isDriverName } from "./names.ts";

export interface CsiRegistrationDependencies {
  readonly drivers: DriverStore;
  /** Adds the driver to CSINode; undefined: no cluster. */
  readonly install: ((driver: DriverOnNode, signal: AbortSignal) => Promise<void>) | undefined;
  readonly uninstall: (name: string) => void;
}

/** Registers the CSI drivers whose registrars' sockets appear (upstream's RegistrationHandler). */
export class CsiRegistration implements PluginHandler {
  readonly type = "CSIPlugin";
  readonly #deps: CsiRegistrationDependencies;
  /** Driver name to its latest registration. Two sockets may tell of one endpoint. */
  readonly #latest = new Map<string, PluginInfo>();

  constructor(deps: CsiRegistrationDependencies) {
    this.#deps = deps;
  }

  validate({ name, endpoint, versions }: PluginInfo): string | undefined {
    const of = `kubernetes.io/csi: ValidatePlugin for CSI driver ${JSON.stringify(name)} failed.`;
    const failed = (why: string): string =>
      `validation failed for CSI Driver ${name} at endpoint ${endpoint}: ${of} ${why}`;
    if (!isDriverName(name)) return failed("The name is not a DNS subdomain of at most 63 characters");
    const highest = highestVersion(versions);
    if ("problem" in highest) return failed(highest.problem);
    const known = this.#deps.drivers.versionOf(name);
    if (known === undefined || compareVersions(known, highest.version) < 0) return undefined;
    return failed(
      `Another driver with the same name is already registered with a higher supported version: ${JSON.stringify(known)}`,
    );
  }

  async register(plugin: PluginInfo, signal: AbortSignal): Promise<void> {
    const { drivers, install } = this.#deps;
    const { name, endpoint, versions } = plugin;
    const highest = highestVersion(versions);
    if ("problem" in highest) throw new Error(highest.problem);
    signal.throwIfAborted();
    this.#latest.set(name, plugin);
    const client = await drivers.add(name, endpoint, highest.version, signal);
    const info = await client.nodeInfo(signal);
    signal.throwIfAborted();
    if (!drivers.isCurrent(client)) throw new Error(`another registration of driver ${name} has replaced this one`);
    if (info.nodeId === "") throw new Error("error adding CSI driver node info: driverNodeID must not be empty");
    await install?.(info, signal);
  }

  deregister(plugin: PluginInfo): void {
    const { name } = plugin;
    // A registration with a higher version has replaced it.
    if (this.#latest.get(name) !== plugin) return;
    this.#latest.delete(name);
    this.#deps.drivers.remove(name);
    this.#deps.uninstall(name);
  }
}
