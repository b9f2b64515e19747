import { errorMessage } from "../base/errors.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import type { Clock } from "../ports/clock.ts";
import type { PluginClient } from "../ports/plugin-client.ts";
import { CsiClient, type CsiClientParts, type OutstandingCsiCall } from "./csi-client.ts";

export interface DriverStoreDependencies {
  readonly clock: Clock;
  readonly plugins: PluginClient;
  readonly called: CsiClientParts["called"];
}

interface RegisteredDriver {
  readonly client: CsiClient;
  readonly version: string;
}

/** A driver that is not registered on this node (yet); upstream's words. */
export class DriverMissingError extends VolumeError {}

/** The CSI drivers that are registered on this node, by their names. */
export class DriverStore {
  readonly #deps: DriverStoreDependencies;
  readonly #drivers = new Map<string, RegisteredDriver>();
  /** By driver: who waits for its registration. */
  readonly #awaited = new Map<string, PromiseWithResolvers<void>>();

  constructor(deps: DriverStoreDependencies) {
    this.#deps = deps;
  }

  get names(): readonly string[] {
    return [...this.#drivers.keys()];
  }

  /** Calls under way. */
  get outstanding(): readonly OutstandingCsiCall[] {
    return [...this.#drivers.values()].flatMap(({ client }) => client.outstanding);
  }

  has(name: string): boolean {
    return this.#drivers.has(name);
  }

  /** @throws DriverMissingError */
  get(name: string): CsiClient {
    const driver = this.#drivers.get(name);
    if (driver !== undefined) return driver.client;
    throw new DriverMissingError(`driver name ${name} not found in the list of registered CSI drivers`);
  }

  /** The highest version that the driver's registration names. */
  versionOf(name: string): string | undefined {
    return this.#drivers.get(name)?.version;
  }

  /** Takes a driver up in place of an earlier registration of its name. */
  async add(name: string, endpoint: string, version: string): Promise<CsiClient> {
    const { clock, plugins, called } = this.#deps;
    // A node without a driver never loads it.
    const { Node, VolumeCapability_AccessMode_Mode: accessModes } = await import("../ports/gen/csi/v1/csi_pb.js");
    const calls = plugins.connect(Node, endpoint, `CSI driver ${name}`);
    const client = new CsiClient({ clock, name, calls, accessModes, called });
    this.#drivers.get(name)?.client[Symbol.dispose]();
    this.#drivers.set(name, { client, version });
    this.#awaited.get(name)?.resolve();
    this.#awaited.delete(name);
    return client;
  }

  /** Calls under way end as canceled, with an unknown outcome. */
  remove(name: string): void {
    this.#drivers.get(name)?.client[Symbol.dispose]();
    this.#drivers.delete(name);
  }

  /** Resolves once the driver is registered; it may be at once. */
  async registered(name: string): Promise<void> {
    if (this.has(name)) return;
    const awaited = this.#awaited.get(name) ?? Promise.withResolvers<void>();
    this.#awaited.set(name, awaited);
    await awaited.promise;
  }

  close(): void {
    for (const name of this.names) this.remove(name);
  }
}

/** Why a driver can't be worked with, in upstream's words. */
export function clientProblem(operation: string, error: unknown): string {
  return `kubernetes.io/csi: ${operation} failed to get CSI client: ${errorMessage(error)}`;
}
