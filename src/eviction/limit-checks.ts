import { errorMessage } from "../base/errors.ts";
import { settlesBefore } from "../base/settling.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import type { FileSystems } from "./file-systems.ts";
import type { LimitEvictions } from "./limit-evictions.ts";
import { usualPeriodMs } from "./next-look.ts";

export interface LimitChecksDependencies {
  readonly clock: Clock;
  readonly log: Logger;
  readonly limits: Pick<LimitEvictions, "enforce">;
}

interface Check {
  readonly sinceMs: number;
  /** Never rejects. */
  readonly ended: Promise<void>;
}

/** How long a check delays evictions for the node. */
const patienceMs = 2_000;

/**
 * When pods' own limits are enforced. Evictions for the node come after that, but a runtime or a disk that hangs does
 * not hold them up: the check goes on beside them.
 */
export class LimitChecks {
  readonly #deps: LimitChecksDependencies;
  #check: Check | undefined;
  /** Monotonic ms. */
  #dueMs = 0;
  /** The next check is wanted at once, also if one is under way. */
  #isHastened = false;
  /** Pods were evicted, and no pass knows it yet. */
  #hasEvicted = false;
  /** It was said that pods' storage cannot be measured. */
  #isBlind = false;

  constructor(deps: LimitChecksDependencies) {
    this.#deps = deps;
  }

  /** A check has not ended in time. */
  get isLate(): boolean {
    return this.#check !== undefined;
  }

  /** The next pass checks; while a check is under way, the one after its end, because that began before. */
  hasten(): void {
    this.#dueMs = 0;
    this.#isHastened = true;
  }

  /**
   * Checks limits if that is due, one check at a time.
   * @returns whether pods were evicted, also by a check that was late at the last call: then none is evicted for the node
   */
  async enforce(fileSystemsNow: () => Promise<FileSystems | undefined>, signal: AbortSignal): Promise<boolean> {
    if (this.#check === undefined && this.#deps.clock.monotonic() >= this.#dueMs) this.#begin(fileSystemsNow, signal);
    await this.#wait();
    signal.throwIfAborted();
    const hasEvicted = this.#hasEvicted;
    this.#hasEvicted = false;
    return hasEvicted;
  }

  /** A check that is under way has ended. */
  async ended(): Promise<void> {
    await this.#check?.ended;
  }

  #begin(fileSystemsNow: () => Promise<FileSystems | undefined>, signal: AbortSignal): void {
    const sinceMs = this.#deps.clock.monotonic();
    this.#dueMs = sinceMs + usualPeriodMs;
    this.#isHastened = false;
    const ended = this.#run(fileSystemsNow, signal).then((isWhole) => {
      this.#check = undefined;
      if (this.#isHastened) return;
      const nowMs = this.#deps.clock.monotonic();
      // Evictions for a disk wait for a late check, and get their turn before the next one.
      if (!isWhole || nowMs - sinceMs >= patienceMs) this.#dueMs = nowMs + usualPeriodMs;
    });
    this.#check = { sinceMs, ended };
  }

  /** @returns whether storage could be measured */
  async #run(fileSystemsNow: () => Promise<FileSystems | undefined>, signal: AbortSignal): Promise<boolean> {
    const { limits, log } = this.#deps;
    try {
      if (await limits.enforce(fileSystemsNow, signal)) this.#hasEvicted = true;
      this.#isBlind = false;
      return true;
    } catch (error) {
      if (signal.aborted) return false;
      const message = "cannot measure whether pods exceed their storage limits";
      if (!this.#isBlind) log.warn(message, { error: errorMessage(error) });
      this.#isBlind = true;
      return false;
    }
  }

  async #wait(): Promise<void> {
    const check = this.#check;
    if (check === undefined) return;
    const { clock } = this.#deps;
    const leftMs = check.sinceMs + patienceMs - clock.monotonic();
    if (leftMs <= 0) return;
    await settlesBefore(check.ended, (late) => clock.timer("pods' storage limits to be checked", leftMs, late));
  }
}
