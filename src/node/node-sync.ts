import { askedPauseMs, isApiError } from "../api-client/api-error.ts";
import type { ApiClient } from "../api-client/client.ts";
import { orAborted } from "../base/abort.ts";
import type { NodeObject } from "../api/node.ts";
import { errorMessage } from "../base/errors.ts";
import type { Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import type { Random } from "../ports/random.ts";
import type { NodePlace } from "../pods/predicates.ts";
import { WakeableWait } from "../base/wakeable-wait.ts";
import { heartbeatRetryMs } from "./heartbeat-retry.ts";
import { KnownNode } from "./known-node.ts";
import type { NodeVolumes } from "./node-volumes.ts";
import { extendedResources } from "./extended-resources.ts";
import { cloudPatch, newNode, type NodeRegistration, ownMetadata, reconcilePatch } from "./node-registration.ts";
import {
  type Address,
  conditionEvents,
  machineMetadata,
  type NodeIdentity,
  type NodeObservation,
  nodeStatus,
  nodeStatusPatch,
} from "./node-status.ts";
import { nodes } from "./resources.ts";

export interface NodeSyncDependencies {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly journal: Recorder;
  readonly log: Logger;
  /** Collects the node's facts; resolves only once the runtime has answered. */
  readonly observe: (signal: AbortSignal) => Promise<NodeObservation>;
  /** Sends the pod CIDRs (the Node's podCIDRs, comma-separated) to the runtime. @throws CriError */
  readonly podCidr: (podCidr: string, signal: AbortSignal) => Promise<void>;
  /** The Node's addresses, each time its status is built. */
  readonly addressesPublished: (addresses: readonly Address[]) => void;
  /** The Node is registered, or found. */
  readonly onRegistered: (node: NodeObject) => void;
  /** Volumes that the Node's status lists. */
  readonly volumes: NodeVolumes;
}

export interface NodeSyncConfig {
  readonly identity: NodeIdentity;
  readonly registration: NodeRegistration;
  /** nodeStatusUpdateFrequency: how often the status is computed. */
  readonly updatePeriodMs: number;
  /** nodeStatusReportFrequency: how often it is sent when nothing changed. */
  readonly reportPeriodMs: number;
}

const firstRetryMs = 100;
const longestRetryMs = 7000;
/** Maximum pause at the server's request: a silent node counts as dead. */
const longestPauseMs = 10_000;
/** How often the Node is requested before a pod is rejected, while the server throttles. */
const maxLookUps = 3;
const jitter = 0.04;
/** As upstream (nodeReadyGracePeriod, and the period of fastStatusUpdateOnce). */
const eagerMs = 120_000;
const eagerPeriodMs = 100;

/**
 * The node's Node: registers it, maintains its status, and observes changes by others (upstream's
 * registerWithAPIServer, syncNodeStatus and fastStatusUpdateOnce). Nothing is reported before the runtime has answered.
 */
export class NodeSync {
  readonly #deps: NodeSyncDependencies;
  readonly #config: NodeSyncConfig;
  readonly #wait: WakeableWait;
  readonly #known = new KnownNode();
  readonly #isKnown = Promise.withResolvers<void>();
  #registered = false;
  /** A watch event of the Node. */
  #watched = false;
  /** Last successful status update; monotonic. */
  #reportedAtMs = Number.NEGATIVE_INFINITY;
  /** Until then the server throttles requests for the Node. */
  #lookUpAtMs = 0;
  /** Spreads the reports of nodes that changed together. */
  #reportOffsetMs = 0;
  #failing = false;
  /** Until the node is ready for the first time its status is computed more often. */
  #wasReady = false;
  /** The last reported state. */
  #unschedulable = false;
  /** The pod CIDR last sent to the runtime. */
  #podCidr = "";

  constructor(deps: NodeSyncDependencies, config: NodeSyncConfig) {
    this.#deps = deps;
    this.#config = config;
    this.#wait = new WakeableWait(deps.clock, "the next node status");
  }

  /** The Node's UID once registered. */
  get uid(): string | undefined {
    return this.#registered ? this.#known.node?.metadata.uid : undefined;
  }

  /** The server's version; before the registration, the version to register. */
  place(): NodePlace {
    const { identity, registration } = this.#config;
    const { name } = identity;
    const { node } = this.#known;
    if (node === undefined) return { name, labels: ownMetadata(identity, registration).labels, taints: [] };
    const { metadata, spec } = node;
    return { name, labels: metadata.labels ?? {}, taints: spec?.taints ?? [], extended: extendedResources(node) };
  }

  /** Something about the node changed: its status is recomputed now. */
  wake(): void {
    this.#wait.wake();
  }

  /** Resolves once it is known whether the server has the Node, or the signal aborts. */
  async known(signal: AbortSignal): Promise<void> {
    await orAborted(this.#isKnown.promise, signal);
  }

  /**
   * Gets the Node from the server: a pod may depend on changes that the watch has yet to deliver. A throttling server
   * is queried again later: otherwise the pod would be rejected for good. Never rejects.
   */
  async refresh(): Promise<void> {
    const { signal } = new AbortController();
    for (let tries = 1; ; tries++) {
      try {
        return this.#take(await this.#lookUp(signal));
      } catch (error) {
        if (pauseOf(error) > 0 && tries < maxLookUps) continue;
        return this.#deps.log.warn("cannot get the node", { error: errorMessage(error) });
      }
    }
  }

  /** From the watch of this node. */
  replaced(objects: readonly NodeObject[]): void {
    const [node] = objects;
    this.#isKnown.resolve();
    const before = this.#known.node;
    // A list from before the registration does not contain the Node.
    if (node === undefined && !this.#watched) return;
    this.#known.listed(node);
    this.#watched = node !== undefined;
    if (node === undefined) this.#gone();
    else this.#seen(before, node);
  }

  changed(type: "ADDED" | "MODIFIED" | "DELETED", node: NodeObject): void {
    if (type !== "DELETED") this.#take(node);
    else if (this.#known.gone(node)) this.#gone();
  }

  /** Registers the node, then maintains its status, until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, volumes } = this.#deps;
    // A volume is set up, and detached, once the server knows that it is in use or no longer.
    using _used = volumes.onUsedChanged(() => this.wake());
    await this.#register(signal);
    const eagerUntilMs = clock.monotonic() + eagerMs;
    while (!signal.aborted) {
      const began = clock.monotonic();
      const askedMs = await this.#sync(signal);
      if (askedMs > 0) await clock.sleep("the pause that the API server requests", askedMs, signal).catch(() => {});
      const eager = !this.#wasReady && !this.#failing && began < eagerUntilMs;
      const periodMs = eager ? eagerPeriodMs : this.#config.updatePeriodMs * (1 + jitter * random.uniform());
      await this.#wait.for(Math.max(0, periodMs - (clock.monotonic() - began)), signal);
    }
  }

  async #register(signal: AbortSignal): Promise<void> {
    const { clock, log, journal, onRegistered } = this.#deps;
    const { name } = this.#config.identity;
    const beganMs = clock.monotonic();
    for (let delayMs = firstRetryMs; !signal.aborted; delayMs = Math.min(delayMs * 2, longestRetryMs)) {
      let waitMs = delayMs;
      try {
        const { node, how } = await this.#tryRegister(signal);
        this.#known.take(node);
        this.#registered = true;
        // An existing Node may have been silent for long: report immediately that it lives.
        if (how === "registered") this.#reportedAtMs = clock.monotonic();
        log.info("node registered", { node: name, how });
        journal.record({
          ...{ kind: "note", what: "NodeRegistered", message: `node ${name} ${how} at the API server` },
          durationMs: clock.monotonic() - beganMs,
          data: { isNew: how === "registered" },
        });
        if (how === "registered") this.#tellConditions(undefined, node);
        this.#tellSchedulable(node);
        onRegistered(node);
        return;
      } catch (error) {
        if (signal.aborted) return;
        waitMs = Math.max(delayMs, pauseOf(error));
        const why = "registerNode is false: the Node must be created by someone else";
        const isMissing = !this.#config.registration.enabled && isApiError(error, "NotFound");
        const fields = { node: name, error: errorMessage(error), retryMs: waitMs, ...(isMissing && { why }) };
        log.warn("cannot register the node", fields);
      }
      await clock.sleep("retry of registering the node", waitMs, signal).catch(() => {});
    }
  }

  async #tryRegister(signal: AbortSignal): Promise<{ readonly node: NodeObject; readonly how: string }> {
    const { client, observe } = this.#deps;
    const { identity, registration } = this.#config;
    const observed = registration.enabled ? await observe(signal) : undefined;
    if (observed !== undefined) {
      try {
        const object = newNode(identity, observed, registration);
        const call = { lane: "heartbeats", resource: nodes, place: {}, signal } as const;
        return { node: await client.create(call, object), how: "registered" };
      } catch (error) {
        if (!isApiError(error, "AlreadyExists", "Forbidden")) throw error;
      }
    }
    const found = await this.#lookUp(signal);
    const patch = observed && reconcilePatch(found, identity, registration, observed.cloud);
    return { node: patch === undefined ? found : await this.#patch(patch, signal), how: "was already registered" };
  }

  /** The server's Node: several may request it, and all of them wait while the server throttles. */
  async #lookUp(signal: AbortSignal): Promise<NodeObject> {
    const { client, clock } = this.#deps;
    const place = { name: this.#config.identity.name };
    for (let restMs; (restMs = this.#lookUpAtMs - clock.monotonic()) > 0;) {
      await clock.sleep("the pause that the API server requests", restMs, signal);
    }
    try {
      return await client.get({ lane: "heartbeats", resource: nodes, place, signal });
    } catch (error) {
      this.#lookUpAtMs = Math.max(this.#lookUpAtMs, clock.monotonic() + pauseOf(error));
      throw error;
    }
  }

  /** The pause that the server requests, milliseconds. */
  async #sync(signal: AbortSignal): Promise<number> {
    const { clock, log } = this.#deps;
    const untilMs = clock.monotonic() + this.#config.updatePeriodMs;
    for (let tries = 1; ; tries++) {
      try {
        await this.#trySync(signal);
        if (this.#failing) log.info("node status updates work again");
        this.#failing = false;
        return 0;
      } catch (error) {
        if (signal.aborted) return 0;
        const pauseMs = heartbeatRetryMs(error, tries);
        if (pauseMs !== undefined && clock.monotonic() + pauseMs < untilMs) {
          await clock.sleep("retry of sending the node's status", pauseMs, signal).catch(() => {});
          continue;
        }
        const askedMs = pauseOf(error);
        const retryMs = Math.max(askedMs, this.#config.updatePeriodMs);
        this.#failing = true;
        log.warn("cannot send the node status", { error: errorMessage(error), retryMs });
        return askedMs;
      }
    }
  }

  async #trySync(signal: AbortSignal): Promise<void> {
    const { clock, random, observe, volumes } = this.#deps;
    await this.#tellPodCidr(signal);
    const unsettled = volumes.unsettled;
    const observed = await observe(signal);
    this.#wasReady ||= observed.problems.length === 0;
    await this.#tellCloud(observed, signal);
    const found = this.#known.node;
    if (found === undefined) return;
    const status = nodeStatus(this.#config.identity, observed, found.status);
    this.#deps.addressesPublished(status.addresses);
    const isUnsure = volumes.mustWrite(unsettled);
    const known = isUnsure ? withoutVolumesInUse(found) : found;
    const { patch, news } = nodeStatusPatch(known, status, machineMetadata(this.#config.identity));
    const due = clock.monotonic() - this.#reportedAtMs >= this.#config.reportPeriodMs + this.#reportOffsetMs;
    if (patch === undefined || !(news || due)) return volumes.settle(unsettled);
    const answer = await this.#patch(patch, signal);
    volumes.settle(unsettled);
    if (this.#known.take(answer)) volumes.seen(answer.status ?? {});
    this.#tellConditions(found, answer);
    this.#tellReboot(found);
    this.#reportedAtMs = clock.monotonic();
    this.#reportOffsetMs = news ? this.#config.reportPeriodMs * (random.uniform() - 0.5) : 0;
  }

  /**
   * A runtime that builds its network configuration from it would never get a network otherwise (upstream's
   * updatePodCIDR).
   */
  async #tellPodCidr(signal: AbortSignal): Promise<void> {
    const podCidr = this.#known.node === undefined ? "" : podCidrOf(this.#known.node);
    if (podCidr === "" || podCidr === this.#podCidr) return;
    const { log, podCidr: tell } = this.#deps;
    try {
      await tell(podCidr, signal);
      log.info("container runtime received the pod CIDR", { before: this.#podCidr, podCidr });
      this.#podCidr = podCidr;
    } catch (error) {
      signal.throwIfAborted();
      log.warn("cannot send the pod CIDR to the container runtime", { podCidr, error: errorMessage(error) });
    }
  }

  /** Labels and ID of a cloud that answered, or changed, after the registration. */
  async #tellCloud({ cloud }: NodeObservation, signal: AbortSignal): Promise<void> {
    const { identity, registration } = this.#config;
    const { node } = this.#known;
    const patch = node && registration.enabled && cloudPatch(node, cloud, registration);
    if (!patch) return;
    const call = { lane: "heartbeats", resource: nodes, place: { name: identity.name }, signal } as const;
    this.#known.take(await this.#deps.client.patch(call, "strategic", patch));
  }

  async #patch(patch: object, signal: AbortSignal): Promise<NodeObject> {
    return await this.#deps.client.patch(this.#call(signal), "strategic", patch);
  }

  #call(signal: AbortSignal) {
    const place = { name: this.#config.identity.name, subresource: "status" };
    return { lane: "heartbeats", resource: nodes, place, signal } as const;
  }

  #take(node: NodeObject): void {
    this.#watched = true;
    const before = this.#known.node;
    if (this.#known.take(node)) this.#seen(before, node);
  }

  #seen(before: NodeObject | undefined, node: NodeObject): void {
    this.#deps.volumes.seen(node.status ?? {});
    const changed = before !== undefined && readiness(before) !== readiness(node);
    if (this.#registered) this.#tellSchedulable(node);
    // The node controller sets Unknown for a silent node: report immediately that it lives.
    if (this.#registered && (changed || podCidrOf(node) !== this.#podCidr)) this.wake();
  }

  #tellConditions(before: NodeObject | undefined, after: NodeObject): void {
    for (const what of conditionEvents(before, after)) {
      const message = `Node ${this.#config.identity.name} status is now: ${what}`;
      this.#deps.journal.record({ kind: "note", what, message });
    }
  }

  #tellReboot({ status }: NodeObject): void {
    const { name, facts } = this.#config.identity;
    const before = status?.nodeInfo?.bootID ?? "";
    if (before === "" || before === facts.bootId) return;
    const message = `Node ${name} has been rebooted, boot id: ${facts.bootId}`;
    this.#deps.journal.record({ kind: "note", what: "Rebooted", message });
  }

  #tellSchedulable({ spec }: NodeObject): void {
    const { unschedulable = false } = spec ?? {};
    if (unschedulable === this.#unschedulable) return;
    this.#unschedulable = unschedulable;
    const what = unschedulable ? "NodeNotSchedulable" : "NodeSchedulable";
    const message = `Node ${this.#config.identity.name} status is now: ${what}`;
    this.#deps.journal.record({ kind: "note", what, message });
  }

  #gone(): void {
    this.#watched = false;
    const { name } = this.#config.identity;
    const message = `node ${name} was deleted at the API server; a restart registers it again`;
    this.#deps.journal.record({ kind: "note", what: "NodeDeleted", message });
    this.#deps.log.warn("node was deleted at the API server; a restart registers it again", { node: name });
  }
}

function pauseOf(error: unknown): number {
  return Math.min(askedPauseMs(error), longestPauseMs);
}

function podCidrOf({ spec }: NodeObject): string {
  return (spec?.podCIDRs ?? []).join(",");
}

function withoutVolumesInUse(node: NodeObject): NodeObject {
  const { volumesInUse: _volumes, ...status } = node.status ?? {};
  return { ...node, status };
}

function readiness(node: NodeObject): string | undefined {
  return node.status?.conditions?.find(({ type }) => type === "Ready")?.status;
}
