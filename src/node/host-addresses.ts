import { isDeepStrictEqual } from "node:util";
import { withDeadline } from "../base/deadline.ts";
import { errorMessage } from "../base/errors.ts";
import { canonicalIp } from "../base/ip.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { Address } from "./node-status.ts";
import type { Network } from "../ports/network.ts";
import { isIpAddress } from "../base/formats.ts";
import { defaultRoutes, hostAddresses, type HostNetwork, type NodeIps, podHostAddresses } from "./host-address.ts";

/** The addresses of this node while it runs. */
export interface NodeHostAddresses {
  /** Detects the current addresses. Never rejects. */
  look(signal: AbortSignal): Promise<readonly string[]>;
  /** The Node's addresses: pods see them as their host's. */
  published(addresses: readonly Address[]): void;
}

interface HostAddressesDependencies {
  readonly clock: Clock;
  readonly files: Pick<Files, "read">;
  readonly network: Pick<Network, "interfaces" | "lookUp">;
  readonly log: Logger;
}

/** A hanging resolver must not delay statuses. */
const lookUpLimitMs = 2000;
const maxRouteBytes = 4 << 20;

/**
 * The machine's addresses, detected with each node status: a changed address is reported without a restart (upstream's
 * NodeAddress setter).
 */
export class HostAddresses implements NodeHostAddresses {
  /** The addresses for pods, the primary one first. One list object while podwright runs; its content changes. */
  readonly list: readonly string[];
  readonly #list: string[];
  readonly #deps: HostAddressesDependencies;
  readonly #nodeIps: NodeIps;
  readonly #nodeName: string;
  #found: readonly string[] = [];
  #resolved: readonly string[] = [];
  #ofNode: readonly Address[] = [];
  /** Addresses of `--node-ip` that the machine does not have, already logged. */
  #foreign: readonly string[] = [];
  #onChange: () => void = () => {};

  constructor(deps: HostAddressesDependencies, nodeIps: NodeIps, nodeName: string) {
    this.#deps = deps;
    this.#nodeIps = nodeIps;
    this.#nodeName = nodeName;
    this.#list = [...nodeIps.given];
    this.list = this.#list;
  }

  async look(signal: AbortSignal): Promise<readonly string[]> {
    if (this.#nodeIps.given.length > 0) {
      this.#warnOfForeign(this.#nodeIps.given);
      return this.#nodeIps.given;
    }
    const isName = isIpAddress(this.#nodeName) ? this.#nodeName : undefined;
    const [v4, v6] = await Promise.all([this.#routes("route"), this.#routes("ipv6_route")]);
    if (isName === undefined) await this.#lookUp(signal);
    const { network, log } = this.#deps;
    const around: HostNetwork = {
      interfaces: network.interfaces(),
      defaultRoutes: defaultRoutes(v4, v6),
      resolved: this.#resolved,
    };
    const found = hostAddresses(this.#nodeIps, isName, around);
    // A machine may briefly have none while its address changes.
    if (found.length === 0 && this.#found.length > 0) return this.#found;
    if (isDeepStrictEqual(found, this.#found)) return this.#found;
    if (this.#found.length > 0) log.warn("node address changed", { before: this.#found, now: found });
    this.#found = found;
    if (this.#ofNode.length === 0) this.#replace(found);
    return found;
  }

  published(addresses: readonly Address[]): void {
    const hosts = podHostAddresses(addresses);
    if (hosts.length > 0) this.#replace(hosts);
    if (isDeepStrictEqual(addresses, this.#ofNode)) return;
    this.#ofNode = addresses;
    this.#onChange();
  }

  /** The Node's addresses, host names included; empty before the first status. */
  get ofNode(): readonly Address[] {
    return this.#ofNode;
  }

  /** @param listener called when the Node's addresses change */
  onChange(listener: () => void): void {
    this.#onChange = listener;
  }

  /** It may be forwarded by another machine; more often it is a typo, or outdated. */
  #warnOfForeign(given: readonly string[]): void {
    const own = new Set(this.#deps.network.interfaces().flatMap(({ addresses }) => addresses.map(canonicalIp)));
    const foreign = given.filter((address) => !own.has(canonicalIp(address)));
    if (isDeepStrictEqual(foreign, this.#foreign)) return;
    this.#foreign = foreign;
    if (foreign.length === 0) return;
    const why = "no network interface of this machine has this address: logs and exec may not reach the node";
    this.#deps.log.warn("reporting --node-ip unverified", { addresses: foreign, reason: why });
  }

  #replace(addresses: readonly string[]): void {
    this.#list.splice(0, this.#list.length, ...addresses);
  }

  async #routes(file: string): Promise<string> {
    try {
      return new TextDecoder().decode(await this.#deps.files.read(`/proc/net/${file}`, maxRouteBytes));
    } catch {
      // A kernel without IPv6 has no such file.
      return "";
    }
  }

  async #lookUp(signal: AbortSignal): Promise<void> {
    const { clock, network, log } = this.#deps;
    const what = "the lookup of the node's name";
    try {
      const ask = (limited: AbortSignal): Promise<string[]> => network.lookUp(this.#nodeName, limited);
      this.#resolved = await withDeadline(clock, what, lookUpLimitMs, signal, ask);
    } catch (error) {
      log.debug("cannot resolve the node's name", { error: errorMessage(error) });
    }
  }
}

/** A node whose addresses never change. */
export function fixedAddresses(addresses: readonly string[]): NodeHostAddresses {
  return { look: async () => addresses, published: () => {} };
}
