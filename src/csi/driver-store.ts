import { errorMessage } from "../base/errors.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import type { Clock } from "../ports/clock.ts";
import type { PluginClient } from "../ports/plugin-client.ts";
import { CsiClient, type CsiClientParts, type OutstandingCsiCall } from "./csi-client.ts";
import { VolumeTurns } from "./volume-turns.ts";

export interface DriverStoreDependencies {
  readonly clock: Clock;
  readonly plugins: PluginClient;
  readonly called: CsiClientParts["called"];
  readonly observer?: CsiClientParts["observer"];
  /** Called when something begins to wait for a driver that is not registered. */
  readonly onAwaited?: () => void;
}

interface RegisteredDriver {
  readonly client: CsiClient;
  readonly version: string;
}

/** The driver is not registered on this node (yet); in upstream's words. */
export class DriverMissingError extends VolumeError {}

/** The CSI drivers registered on this node, by name. */
export class DriverStore {
  /** A volume outlasts its driver's registrations, and a call of an earlier one may be in progress. */
  readonly turns: VolumeTurns;
  readonly #deps: DriverStoreDependencies;
  readonly #drivers = new Map<string, RegisteredDriver>();
  /** Clients of ended registrations whose calls are still in progress. */
  readonly #leaving = new Set<CsiClient>();
  readonly #stopping = new AbortController();
  /** Driver name to its waiters for the registration. */
  readonly #awaited = new Map<string, PromiseWithResolvers<void>>();

  constructor(deps: DriverStoreDependencies) {
    this.#deps = deps;
    this.turns = new VolumeTurns(deps.clock);
  }

  get names(): readonly string[] {
    return [...this.#drivers.keys()];
  }

  /** Calls in progress. */
  get outstanding(): readonly OutstandingCsiCall[] {
    const clients = [...this.#leaving, ...[...this.#drivers.values()].map(({ client }) => client)];
    return clients.flatMap(({ outstanding }) => outstanding);
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

  /** Whether its registration lasts: it may have ended, or a later one replaced it. */
  isCurrent(client: CsiClient): boolean {
    return this.#drivers.get(client.name)?.client === client;
  }

  /** The highest version in the driver's registration. */
  versionOf(name: string): string | undefined {
    return this.#drivers.get(name)?.version;
  }

  /** Adds a driver, replacing an earlier registration of its name. @throws the signal's reason, without adding it */
  async add(name: string, endpoint: string, version: string, signal?: AbortSignal): Promise<CsiClient> {
    const { clock, plugins, called, observer } = this.#deps;
    // Only a node with drivers loads it.
    const { Node, VolumeCapability_AccessMode_Mode: accessModes } = await import("../ports/gen/csi/v1/csi_pb.js");
    signal?.throwIfAborted();
    const lost = (): void => client.connectionLost();
    const calls = plugins.connect(Node, endpoint, `CSI driver ${name}`, lost);
    const { signal: stopping } = this.#stopping;
    const client = new CsiClient({ clock, name, calls, turns: this.turns, accessModes, stopping, called, observer });
    this.remove(name);
    this.#drivers.set(name, { client, version });
    this.#awaited.get(name)?.resolve();
    this.#awaited.delete(name);
    return client;
  }

  /** Calls in progress go on: the driver itself may be running, as when only its registrar restarts. */
  remove(name: string): void {
    const client = this.#drivers.get(name)?.client;
    if (client === undefined) return;
    this.#drivers.delete(name);
    this.#leaving.add(client);
    client.retire(() => this.#leaving.delete(client));
  }

  /**
   * Resolves once the driver is registered, immediately if it is. The same promise for all, so that a driver that never
   * registers keeps nothing of those that have waited.
   */
  registered(name: string): Promise<void> {
    if (this.has(name)) return Promise.resolve();
    this.#deps.onAwaited?.();
    const awaited = this.#awaited.get(name) ?? Promise.withResolvers<void>();
    this.#awaited.set(name, awaited);
    return awaited.promise;
  }

  /** Calls in progress end as canceled, with an unknown outcome, and others are not made any more. */
  stop(): void {
    this.#stopping.abort(new Error("podwright is stopping"));
  }

  close(): void {
    this.stop();
    for (const name of this.names) this.remove(name);
    for (const client of this.#leaving) client[Symbol.dispose]();
    this.#leaving.clear();
  }
}

/** Why a driver cannot be used, in upstream's words. */
export function clientProblem(operation: string, error: unknown): string {
  const what = operation === "attacher.MountDevice" ? "create newCsiDriverClient" : "get CSI client";
  return `kubernetes.io/csi: ${operation} failed to ${what}: ${errorMessage(error)}`;
}
