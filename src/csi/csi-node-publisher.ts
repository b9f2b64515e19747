import { askedPauseMs, isApiError } from "../api-client/api-error.ts";
import type { ApiClient } from "../api-client/client.ts";
import type { CsiNode } from "../api/csi-node.ts";
import type { NodeObject } from "../api/node.ts";
import { onAbort } from "../base/abort.ts";
import { Emitter } from "../base/emitter.ts";
import { errorMessage } from "../base/errors.ts";
import { WakeableWait } from "../base/wakeable-wait.ts";
import type { Recorder } from "../journal/entry.ts";
import type { NodeProblem } from "../node/node-problem.ts";
import { nodes } from "../node/resources.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import type { Random } from "../ports/random.ts";
import { csiNodeStep, type DriverOnNode, nodePatch, topologyCollision, type WantedDrivers } from "./csi-node-object.ts";
import { csiNodes } from "./resources.ts";

export interface CsiNodePublisherDependencies {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly nodeName: string;
}

const [firstRetryMs, longestRetryMs] = [30, 10_000];
/** Upstream's kubelet exits if the CSINode does not exist after this time. */
const upstreamExitMs = 140_000;
/** How long a driver's registration waits for the API server. */
const installLimitMs = 10_000;
/** Create, replace, or delete and create: if more writes are needed, somebody else is changing the object. */
const maxSteps = 3;

/** A driver whose topology cannot be published. */
class CollisionError extends Error {}

/**
 * Publishes the node's drivers: its CSINode, and the Node's annotation and topology labels. Level-triggered: the
 * desired state is compared with the API server's until both are equal. Until the CSINode exists, the node is not
 * ready.
 */
export class CsiNodePublisher implements NodeProblem {
  readonly #deps: CsiNodePublisherDependencies;
  readonly #changes = new Emitter();
  readonly #wait: WakeableWait;
  readonly #installed = new Map<string, DriverOnNode>();
  readonly #removed = new Set<string>();
  /** Resolve once the desired state is published. */
  #waiting = new Set<() => void>();
  /** Why drivers were rejected. */
  readonly #collisions = new WeakMap<DriverOnNode, string>();
  readonly #node = Promise.withResolvers<NodeObject>();
  #problem: string | undefined = "CSINode is not yet initialized";
  #isInitialized = false;
  #isDirty = true;
  #failures = 0;
  #failingSinceMs: number | undefined;
  /** Earliest time of the next request, after a Retry-After; monotonic ms. */
  #pausedUntilMs = 0;

  constructor(deps: CsiNodePublisherDependencies) {
    this.#deps = deps;
    this.#wait = new WakeableWait(deps.clock, "a change of the node's CSI drivers");
  }

  get problem(): string | undefined {
    return this.#problem;
  }

  onChange(listener: () => void): Disposable {
    return this.#changes.on(listener);
  }

  /** Call after the Node was registered or found. */
  registered(node: NodeObject): void {
    // An earlier run has published it, or the Node would not be Ready: a restart does not change that.
    if (node.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true) {
      this.#tell(undefined);
    }
    this.#node.resolve(node);
  }

  /**
   * Adds the driver, or updates its data. Resolves once it is published; if the API server does not respond, it
   * resolves earlier and publishing continues in the background.
   * @throws Error if the driver's topology conflicts with the Node
   * @throws the signal's reason as soon as it aborts: the driver stays until {@link uninstall}
   */
  async install(driver: DriverOnNode, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { clock } = this.#deps;
    const { name } = driver;
    this.#installed.set(name, driver);
    this.#removed.delete(name);
    this.#collisions.delete(driver);
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting = this.#waiting;
    waiting.add(resolve);
    this.#changed();
    using _limit = clock.timer(`CSI driver ${name} to be published`, installLimitMs, resolve);
    using _abort = onAbort(signal, resolve);
    await promise;
    waiting.delete(resolve);
    signal.throwIfAborted();
    const problem = this.#collisions.get(driver);
    // A later answer of the driver may have taken this one's place.
    if (problem === undefined && this.#installed.has(name)) return;
    throw new CollisionError(problem ?? `CSI driver ${name} was deregistered meanwhile`);
  }

  /** Removes the driver. */
  uninstall(name: string): void {
    this.#installed.delete(name);
    this.#removed.add(name);
    this.#changed();
  }

  /** Publishes until the signal aborts. Rejects only for a defect. */
  async run(signal: AbortSignal): Promise<void> {
    const stopped = Promise.withResolvers<undefined>();
    using _stop = onAbort(signal, () => stopped.resolve(undefined));
    const node = await Promise.race([this.#node.promise, stopped.promise]);
    if (node === undefined) return;
    while (!signal.aborted) {
      const restMs = this.#pausedUntilMs - this.#deps.clock.monotonic();
      if (restMs > 0) {
        await this.#deps.clock.sleep("the pause that the API server requests", restMs, signal).catch(() => {});
        continue;
      }
      const delayMs = this.#isDirty ? await this.#publish(node, signal) : Number.POSITIVE_INFINITY;
      if (delayMs === 0) continue;
      await this.#wait.for(Math.min(delayMs, 3_600_000), signal);
    }
    for (const resolve of this.#waiting) resolve();
  }

  #changed(): void {
    this.#isDirty = true;
    this.#wait.wake();
  }

  /** The delay until the next attempt, ms; 0: immediately. */
  async #publish(node: NodeObject, signal: AbortSignal): Promise<number> {
    this.#isDirty = false;
    const waiting = this.#waiting;
    this.#waiting = new Set();
    try {
      await this.#publishNode(signal);
      await this.#publishCsiNode(node.metadata.uid ?? "", signal);
      this.#published();
      for (const resolve of waiting) resolve();
      return this.#isDirty ? 0 : Number.POSITIVE_INFINITY;
    } catch (error) {
      this.#isDirty = true;
      for (const resolve of waiting) resolve();
      return signal.aborted ? 0 : this.#failed(error);
    }
  }

  #published(): void {
    const { log } = this.#deps;
    if (this.#failingSinceMs !== undefined) log.info("CSINode is published again");
    this.#failures = 0;
    this.#failingSinceMs = undefined;
    if (this.#isInitialized) return;
    this.#isInitialized = true;
    this.#tell(undefined);
  }

  #failed(error: unknown): number {
    const { clock, random, journal, log } = this.#deps;
    const nowMs = clock.monotonic();
    const text = errorMessage(error);
    const sinceMs = (this.#failingSinceMs ??= nowMs);
    const delayMs = Math.min(firstRetryMs * 8 ** this.#failures, longestRetryMs) * (1 + 0.1 * random.uniform());
    this.#failures++;
    const isLong = nowMs - sinceMs >= upstreamExitMs;
    const fields = { error: text, failingMs: Math.round(nowMs - sinceMs), retryMs: Math.round(delayMs) };
    if (isLong) log.error("CSINode still not published; retrying, unlike the Go kubelet, which exits", fields);
    else if (this.#failures > 1) log.warn("cannot publish the CSINode", fields);
    if (this.#failures === 2) {
      journal.record({ kind: "note", what: "CSINodeNotPublished", message: `cannot publish the CSINode: ${text}` });
    }
    if (!this.#isInitialized) this.#tell(`failed to initialize CSINode: ${text}`);
    this.#pausedUntilMs = nowMs + askedPauseMs(error);
    return Math.max(delayMs, askedPauseMs(error));
  }

  #tell(problem: string | undefined): void {
    if (problem === this.#problem) return;
    this.#problem = problem;
    this.#changes.emit();
  }

  #wanted(nodeUid: string): WantedDrivers {
    const installed = [...this.#installed.values()];
    return { nodeName: this.#deps.nodeName, nodeUid, installed, removed: new Set(this.#removed) };
  }

  /** The Node's annotation and labels, if they change. */
  async #publishNode(signal: AbortSignal): Promise<void> {
    const { client, nodeName: name } = this.#deps;
    if (this.#installed.size + this.#removed.size === 0) return;
    const node = await client.get({ lane: "objects", resource: nodes, place: { name }, signal });
    for (const driver of this.#installed.values()) {
      const collision = topologyCollision(node, driver);
      if (collision === undefined) continue;
      // The other drivers are published anyway.
      this.#installed.delete(driver.name);
      this.#collisions.set(driver, `error updating Node object with CSI driver node info: ${collision}`);
    }
    const patch = nodePatch(node, this.#wanted(""));
    if (patch === undefined) return;
    const place = { name, subresource: "status" };
    await client.patch({ lane: "status", resource: nodes, place, signal }, "strategic", patch);
  }

  async #publishCsiNode(nodeUid: string, signal: AbortSignal): Promise<void> {
    for (let steps = 0; steps < maxSteps; steps++) {
      const step = csiNodeStep(await this.#find(signal), this.#wanted(nodeUid));
      if (step.kind === "keep") return;
      try {
        if (step.kind === "delete") await this.#delete(signal);
        else await this.#write(step.kind, step.object, signal);
        if (step.kind !== "delete") return;
      } catch (error) {
        // Another writer was faster.
        if (!isApiError(error, "Conflict", "AlreadyExists", "NotFound") || steps === maxSteps - 1) throw error;
      }
    }
    throw new Error(`CSINode ${this.#deps.nodeName} keeps being created by another client`);
  }

  async #find(signal: AbortSignal): Promise<CsiNode | undefined> {
    const { client, nodeName: name } = this.#deps;
    try {
      return await client.get({ lane: "objects", resource: csiNodes, place: { name }, signal });
    } catch (error) {
      if (isApiError(error, "NotFound")) return undefined;
      throw error;
    }
  }

  async #write(kind: "create" | "replace", object: object, signal: AbortSignal): Promise<void> {
    const { client, nodeName: name } = this.#deps;
    const call = { lane: "objects", resource: csiNodes, signal } as const;
    if (kind === "create") await client.create({ ...call, place: {} }, object);
    else await client.replace({ ...call, place: { name } }, object);
  }

  async #delete(signal: AbortSignal): Promise<void> {
    const { client, nodeName: name } = this.#deps;
    await client.delete({ lane: "objects", resource: csiNodes, place: { name }, signal }, {});
  }
}
