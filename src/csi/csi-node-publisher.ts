import { askedPauseMs } from "../api-client/api-error.ts";
import type { ApiClient } from "../api-client/client.ts";
import type { NodeObject } from "../api/node.ts";
import { onAbort } from "../base/abort.ts";
import { Emitter } from "../base/emitter.ts";
import { errorMessage } from "../base/errors.ts";
import { WakeableWait } from "../base/wakeable-wait.ts";
import type { Recorder } from "../journal/entry.ts";
import type { NodeProblem } from "../node/node-problem.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import type { Random } from "../ports/random.ts";
import { type DriverOnNode, movedProblem } from "./csi-node-object.ts";
import { CsiNodeWriter, RefusedError, type WantedEntries } from "./csi-node-writer.ts";
import { RefusedDrivers } from "./refused-drivers.ts";

export interface CsiNodePublisherDependencies {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly nodeName: string;
}

const [firstRetryMs, longestRetryMs] = [30, 10_000];
/** As registrars are retried. */
const longestRefusedMs = 120_000;
/** Upstream's; an admission plugin that has just started refuses everything for a moment. */
const maxTries = 4;
/** Upstream's kubelet exits if the CSINode does not exist after this time. */
const upstreamExitMs = 140_000;
/** How long a driver's registration waits for the API server. */
const installLimitMs = 10_000;

/** What is to become of a driver's entry. A later wish takes the place of an earlier one. */
interface Wish {
  readonly name: string;
  /** Undefined: nothing is left of it. */
  readonly driver: DriverOnNode | undefined;
  /** It registers: the Node gets its ID and its labels, too. Otherwise only its count is another one. */
  readonly registers: boolean;
  /** They are told why the API server refuses it; undefined: it is published, or the API server does not respond. */
  readonly waiters: Set<(problem: string | undefined) => void>;
  refusals: number;
  /** Of the next try, monotonic ms. */
  dueMs: number;
  /** The last try was not refused, but failed. */
  hasFailed: boolean;
}

const untried = { refusals: 0, dueMs: 0, hasFailed: false };

/**
 * Publishes the node's drivers: its CSINode, and the Node's annotation and topology labels. Each driver is written on its
 * own, so that one that the API server refuses affects no other. Until the CSINode exists, with or without drivers, the
 * node is not ready.
 */
export class CsiNodePublisher implements NodeProblem {
  readonly #deps: CsiNodePublisherDependencies;
  readonly #writer: CsiNodeWriter;
  readonly #changes = new Emitter();
  readonly #wait: WakeableWait;
  /** Drivers whose entries are published; they return with a CSINode that somebody has deleted. */
  readonly #listed = new Map<string, DriverOnNode>();
  /** What is not published yet, by driver. */
  readonly #wishes = new Map<string, Wish>();
  readonly #refusals: RefusedDrivers;
  readonly #node = Promise.withResolvers<NodeObject>();
  #problem: string | undefined = "CSINode is not yet initialized";
  #isInitialized = false;
  #failures = 0;
  #failing: { readonly sinceMs: number; readonly text: string } | undefined;
  /** Earliest time of the next request, after a Retry-After; monotonic ms. */
  #pausedUntilMs = 0;

  constructor(deps: CsiNodePublisherDependencies) {
    this.#deps = deps;
    this.#writer = new CsiNodeWriter(deps);
    this.#wait = new WakeableWait(deps.clock, "a change of the node's CSI drivers");
    this.#refusals = new RefusedDrivers(deps);
  }

  get problem(): string | undefined {
    return this.#problem;
  }

  /** Why the node's drivers are not all published although the CSINode exists, for `podwright doctor`. */
  get unpublished(): readonly string[] {
    const failing = this.#isInitialized && this.#failures > 1 ? this.#failing : undefined;
    const texts = failing === undefined ? [] : [`cannot publish the CSINode: ${failing.text}`];
    return [...texts, ...this.#refusals.recent];
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
   * Adds a driver that registers. Resolves once it is published; if the API server does not respond, it resolves earlier
   * and publishing continues in the background.
   * @throws Error if the driver's topology conflicts with the Node, or if the API server refuses the driver
   * @throws the signal's reason as soon as it aborts: the driver stays until {@link uninstall}
   */
  async install(driver: DriverOnNode, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { name } = driver;
    const waiters: Wish["waiters"] = this.#wishes.get(name)?.waiters ?? new Set();
    this.#listed.delete(name);
    await this.#outcome(this.#want({ name, driver, registers: true, waiters, ...untried }), signal);
  }

  /**
   * Updates the count of a driver that has registered, in the CSINode only. Resolves as {@link install}.
   * @throws Error if more than the count has changed, or if the API server refuses it
   * @throws the signal's reason as soon as it aborts
   */
  async update(answer: DriverOnNode, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { name, maxVolumes } = answer;
    const pending = this.#wishes.get(name);
    const known = pending === undefined ? this.#listed.get(name) : pending.driver;
    if (known === undefined) throw new Error(deregistered(name));
    const moved = movedProblem(known, answer);
    if (moved !== undefined) throw new Error(moved);
    const rest = pending ?? { name, registers: false, waiters: new Set(), ...untried };
    await this.#outcome(this.#want({ ...rest, driver: { ...known, maxVolumes } }), signal);
  }

  /** Removes the driver. */
  uninstall(name: string): void {
    const earlier = this.#wishes.get(name);
    if (earlier !== undefined) settle(earlier, deregistered(name));
    this.#listed.delete(name);
    this.#want({ name, driver: undefined, registers: false, waiters: new Set(), ...untried });
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
      const delayMs = await this.#publish(node.metadata.uid ?? "", signal);
      if (delayMs > 0) await this.#wait.for(Math.min(delayMs, 3_600_000), signal);
    }
    for (const wish of this.#wishes.values()) settle(wish, undefined);
  }

  #want(wish: Wish): Wish {
    this.#wishes.set(wish.name, wish);
    this.#wait.wake();
    return wish;
  }

  async #outcome({ name, waiters }: Wish, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    waiters.add(resolve);
    const giveUp = (): void => resolve(undefined);
    using _limit = this.#deps.clock.timer(`CSI driver ${name} to be published`, installLimitMs, giveUp);
    using _abort = onAbort(signal, giveUp);
    const problem = await promise;
    waiters.delete(resolve);
    signal.throwIfAborted();
    if (problem !== undefined) throw new Error(problem);
  }

  /** The delay until the next attempt, ms; 0: immediately. */
  async #publish(nodeUid: string, signal: AbortSignal): Promise<number> {
    try {
      if (!this.#isInitialized) {
        await this.#writer.publish(this.#wanted(nodeUid), signal);
        this.#isInitialized = true;
        this.#tell(undefined);
      }
      for (let wish = this.#next(); wish !== undefined; wish = this.#next()) await this.#grant(wish, nodeUid, signal);
      if (!this.#wishes.values().some(({ hasFailed }) => hasFailed)) this.#succeeded();
      const dueMs = Math.min(...[...this.#wishes.values()].map((wish) => wish.dueMs));
      return dueMs - this.#deps.clock.monotonic();
    } catch (error) {
      return signal.aborted ? 0 : this.#failed(error);
    }
  }

  /** A wish whose time has come. */
  #next(): Wish | undefined {
    const nowMs = this.#deps.clock.monotonic();
    return this.#wishes.values().find(({ dueMs }) => dueMs <= nowMs);
  }

  /** @throws the error of a request that the API server has not refused */
  async #grant(wish: Wish, nodeUid: string, signal: AbortSignal): Promise<void> {
    const { name, driver, registers } = wish;
    try {
      if (driver !== undefined && registers) await this.#writer.addToNode(driver, signal);
      await this.#writer.publish(this.#wanted(nodeUid, wish), signal);
      if (driver === undefined) await this.#writer.removeFromNode(name, signal);
    } catch (error) {
      if (error instanceof RefusedError) return this.#refused(wish, error);
      wish.hasFailed = true;
      throw error;
    }
    // Another one has taken its place.
    if (this.#wishes.get(name) !== wish) return;
    this.#wishes.delete(name);
    if (driver !== undefined) this.#listed.set(name, driver);
    this.#refusals.over(name, driver === undefined);
    settle(wish, undefined);
  }

  #wanted(nodeUid: string, wish?: Wish): WantedEntries {
    const installed = [...this.#listed.values()].filter(({ name }) => name !== wish?.name);
    if (wish === undefined) return { nodeUid, installed, removed: new Set() };
    if (wish.driver === undefined) return { nodeUid, installed, removed: new Set([wish.name]) };
    return { nodeUid, installed: [...installed, wish.driver], removed: new Set() };
  }

  /** The other drivers go on. */
  #refused(wish: Wish, error: RefusedError): void {
    const { clock, random } = this.#deps;
    const { name, driver, registers } = wish;
    const delayMs = Math.min(firstRetryMs * 8 ** wish.refusals, longestRefusedMs) * (1 + 0.1 * random.uniform());
    wish.refusals++;
    wish.hasFailed = false;
    wish.dueMs = clock.monotonic() + delayMs;
    if (this.#wishes.get(name) !== wish || (!error.isFinal && wish.refusals < maxTries)) return;
    this.#refusals.add(name, { text: error.message, isRemoval: driver === undefined });
    // The next answer of the driver has its own tries.
    if (driver !== undefined && !registers) this.#wishes.delete(name);
    settle(wish, error.message);
  }

  #succeeded(): void {
    const { log } = this.#deps;
    if (this.#failing !== undefined) log.info("CSINode is published again");
    this.#failures = 0;
    this.#failing = undefined;
  }

  #failed(error: unknown): number {
    const { clock, random, journal, log } = this.#deps;
    const nowMs = clock.monotonic();
    const text = errorMessage(error);
    const { sinceMs } = (this.#failing = { sinceMs: this.#failing?.sinceMs ?? nowMs, text });
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
    const isRefused = error instanceof RefusedError;
    // Drivers are used without the API server, but not because of one request that failed: the next may be refused.
    if (this.#failures >= (isRefused ? maxTries : 2)) {
      for (const wish of this.#wishes.values()) settle(wish, isRefused ? text : undefined);
    }
    // The others come first then: it may be this one's content at which the API server fails.
    for (const wish of this.#wishes.values()) if (wish.hasFailed) wish.dueMs = Math.max(wish.dueMs, nowMs + delayMs);
    this.#pausedUntilMs = nowMs + askedPauseMs(error);
    return Math.max(delayMs, askedPauseMs(error));
  }

  #tell(problem: string | undefined): void {
    if (problem === this.#problem) return;
    this.#problem = problem;
    this.#changes.emit();
  }
}

function settle({ waiters }: Wish, problem: string | undefined): void {
  for (const tell of waiters) tell(problem);
  waiters.clear();
}

function deregistered(name: string): string {
  return `CSI driver ${name} was deregistered meanwhile`;
}
