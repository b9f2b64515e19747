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
  /** The server's store was restored to an earlier state. */
  readonly onStoreRestored: () => void;
  /** The Node's UID, once registered: the lease is deleted with it. */
  readonly nodeUid: () => string | undefined;
}

/**
 * As upstream: a quarter of the lease duration. Two consecutive renewals may fail; after a third the next one is late.
 */
const renewals = 0.25;
const jitter = 0.04;
const triesAtOnce = 5;

/** The node's heartbeat (KEP-589): a Lease in kube-node-lease, renewed on its own lane. */
export class NodeLease {
  readonly #deps: LeaseDependencies;
  readonly #durationSeconds: number;
  readonly #wait: WakeableWait;
  #last: Lease | undefined;
  /** The lease's last resourceVersion. */
  #version = 0n;
  #renewedAtMs: number | undefined;
  #failing = false;

  constructor(deps: LeaseDependencies, durationSeconds: number) {
    this.#deps = deps;
    this.#durationSeconds = durationSeconds;
    this.#wait = new WakeableWait(deps.clock, "the next renewal of the node's lease");
  }

  /** Its last renewal; monotonic. */
  get renewedAtMs(): number | undefined {
    return this.#renewedAtMs;
  }

  /** Renews it until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#deps;
    const periodMs = this.#durationSeconds * 1000 * renewals;
    while (!signal.aborted) {
      const began = clock.monotonic();
      const problem = await this.#renew(began + periodMs, signal);
      // Measured from start to start: a slow server must not stretch the interval of heartbeats, and a longer requested
      // pause must not suppress them.
      const waitMs = periodMs * (1 + jitter * random.uniform()) - (clock.monotonic() - began);
      const askedMs = Math.min(askedPauseMs(problem), periodMs);
      const delayMs = Math.max(0, waitMs, askedMs);
      if (problem !== undefined && !signal.aborted) this.#tell(problem, delayMs);
      // No wake-up shortens a pause that the server requested.
      if (askedMs > 0) await clock.sleep("the pause that the API server requests", askedMs, signal).catch(() => {});
      await this.#wait.for(delayMs - askedMs, signal);
    }
  }

  /** The node is registered: its lease can be created. */
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

  /** Takes over the existing lease, or creates it; undefined while the node is not registered. */
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
    // Without its owner it would never be deleted. The owner is set at registration.
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
   * resourceVersions of a collection grow (KEP-5504). The lease is the node's most frequent write, so a restored store
   * is noticed within one renewal.
   */
  #seen(lease: Lease): Lease {
    const text = lease.metadata.resourceVersion ?? "";
    if (!/^[0-9]+$/u.test(text)) return lease;
    const version = BigInt(text);
    if (version < this.#version) this.#deps.onStoreRestored();
    this.#version = version;
    return lease;
  }

  /** The Node, where there is no owner yet, or one that it has replaced; those that others have set stay, as upstream. */
  #owners({ metadata: { ownerReferences: found = [] } }: Lease): Lease["metadata"]["ownerReferences"] {
    const { nodeName: name, nodeUid } = this.#deps;
    const uid = nodeUid();
    const foreign = found.filter((owner) => owner["kind"] !== "Node" || owner["name"] !== name);
    const isTheirs = found.length > 0 && foreign.length === found.length;
    if (uid === undefined || isTheirs || found.some((owner) => owner.uid === uid)) return undefined;
    return [...foreign, { apiVersion: "v1", kind: "Node", name, uid }];
  }

  #object(lease: Lease): object {
    const { clock, nodeName } = this.#deps;
    const ownerReferences = this.#owners(lease);
    return {
      ...lease,
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { ...lease.metadata, ...(ownerReferences && { ownerReferences }) },
      spec: {
        ...lease.spec,
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
