import { askedPauseMs, isApiError } from "../api-client/api-error.ts";
import type { ApiClient } from "../api-client/client.ts";
import type { Lease } from "../api/node.ts";
import { errorMessage } from "../base/errors.ts";
import { WakeableWait } from "../base/wakeable-wait.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import type { Random } from "../ports/random.ts";
import { heartbeatRetryMs } from "./heartbeat-retry.ts";
import { leaseNamespace, leases } from "./resources.ts";

export interface LeaseDependencies {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly nodeName: string;
  /** The server's store has an earlier state than it had. */
  readonly onStoreRestored: () => void;
  /** The Node's UID, once it is registered: the lease goes with it. */
  readonly nodeUid: () => string | undefined;
}

/** As upstream: a quarter of the lease. Two renewals in a row may be lost; after a third the next one comes too late. */
const renewals = 0.25;
const jitter = 0.04;
const triesAtOnce = 5;

/** The node's sign of life (KEP-589): a Lease in kube-node-lease, renewed on a lane of its own. */
export class NodeLease {
  readonly #deps: LeaseDependencies;
  readonly #durationSeconds: number;
  readonly #wait: WakeableWait;
  #last: Lease | undefined;
  /** What the server said last that the version of the lease is. */
  #version = 0n;
  #renewedAtMs: number | undefined;
  #failing = false;

  constructor(deps: LeaseDependencies, durationSeconds: number) {
    this.#deps = deps;
    this.#durationSeconds = durationSeconds;
    this.#wait = new WakeableWait(deps.clock, "the next renewal of the node's lease");
  }

  /** When it was renewed last; monotonic. */
  get renewedAtMs(): number | undefined {
    return this.#renewedAtMs;
  }

  /** Renews until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#deps;
    const periodMs = this.#durationSeconds * 1000 * renewals;
    while (!signal.aborted) {
      const began = clock.monotonic();
      const problem = await this.#renew(began + periodMs, signal);
      // From beginning to beginning: a slow server must not stretch the time between two signs of life, and none that
      // asks for more than that time is left without one.
      const waitMs = periodMs * (1 + jitter * random.uniform()) - (clock.monotonic() - began);
      const askedMs = Math.min(askedPauseMs(problem), periodMs);
      const delayMs = Math.max(0, waitMs, askedMs);
      if (problem !== undefined && !signal.aborted) this.#tell(problem, delayMs);
      // No hint shortens a pause that the server asks for.
      if (askedMs > 0) await clock.sleep("the pause that the API server requests", askedMs, signal).catch(() => {});
      await this.#wait.for(delayMs - askedMs, signal);
    }
  }

  /** The node is registered: its lease can be made. */
  wake(): void {
    if (this.#last === undefined) this.#wait.wake();
  }

  /**
   * Why it was not renewed; undefined: it was.
   * @param untilMs when the next renewal is due; monotonic
   */
  async #renew(untilMs: number, signal: AbortSignal): Promise<unknown> {
    const { clock } = this.#deps;
    for (let tries = 1; ; tries++) {
      try {
        await this.#tryRenew(signal);
        return undefined;
      } catch (error) {
        const isStale = isApiError(error, "Conflict", "NotFound", "AlreadyExists");
        if (isStale) this.#last = undefined;
        if (signal.aborted || tries === triesAtOnce) return error;
        if (isStale) continue;
        const pauseMs = heartbeatRetryMs(error, tries);
        if (pauseMs === undefined || clock.monotonic() + pauseMs >= untilMs) return error;
        await clock.sleep("retry of renewing the node's lease", pauseMs, signal).catch(() => {});
      }
    }
  }

  async #tryRenew(signal: AbortSignal): Promise<void> {
    const { log, clock } = this.#deps;
    this.#last = this.#last === undefined ? await this.#ensure(signal) : await this.#replace(this.#last, signal);
    if (this.#last === undefined) return;
    this.#renewedAtMs = clock.monotonic();
    if (this.#failing) log.info("node lease renewed again");
    this.#failing = false;
  }

  #tell(problem: unknown, delayMs: number): void {
    this.#failing = true;
    const fields = { error: errorMessage(problem), retryMs: Math.round(delayMs) };
    this.#deps.log.warn("cannot renew the node lease", fields);
  }

  /** Takes over what is there, or creates it; undefined while the node is not registered. */
  async #ensure(signal: AbortSignal): Promise<Lease | undefined> {
    const { client, nodeName } = this.#deps;
    const place = { namespace: leaseNamespace, name: nodeName };
    try {
      const found = await client.get({ lane: "heartbeats", resource: leases, place, signal });
      this.#seen(found);
      return await this.#replace(found, signal);
    } catch (error) {
      if (!isApiError(error, "NotFound")) throw error;
    }
    // Without its owner nobody would ever remove it. It comes with the node's registration.
    if (this.#deps.nodeUid() === undefined) return undefined;
    const collection = { namespace: leaseNamespace };
    const created = this.#object({ metadata: { name: nodeName, namespace: leaseNamespace } });
    return this.#seen(
      await client.create({ lane: "heartbeats", resource: leases, place: collection, signal }, created),
    );
  }

  async #replace(lease: Lease, signal: AbortSignal): Promise<Lease> {
    const { client, nodeName } = this.#deps;
    const place = { namespace: leaseNamespace, name: nodeName };
    return this.#seen(
      await client.replace({ lane: "heartbeats", resource: leases, place, signal }, this.#object(lease)),
    );
  }

  /**
   * Versions of a collection are numbers that grow (KEP-5504). The lease is written more often than anything else of the
   * node, so that a store that was set back is noticed by it within a renewal.
   */
  #seen(lease: Lease): Lease {
    const text = lease.metadata.resourceVersion ?? "";
    if (!/^[0-9]+$/u.test(text)) return lease;
    const version = BigInt(text);
    if (version < this.#version) this.#deps.onStoreRestored();
    this.#version = version;
    return lease;
  }

  #object(lease: Lease): object {
    const { clock, nodeName, nodeUid } = this.#deps;
    const uid = nodeUid();
    const owner = uid && { apiVersion: "v1", kind: "Node", name: nodeName, uid };
    return {
      ...lease,
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { ...lease.metadata, ...(owner && { ownerReferences: [owner] }) },
      spec: {
        holderIdentity: nodeName,
        leaseDurationSeconds: this.#durationSeconds,
        renewTime: microTime(clock.now()),
      },
    };
  }
}

/** metav1.MicroTime. */
function microTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString().replace("Z", "000Z");
}
