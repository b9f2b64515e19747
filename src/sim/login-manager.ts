import { Emitter } from "../base/emitter.ts";
import { EventChannel } from "../base/event-channel.ts";
import type { Files } from "../ports/files.ts";
import type { LoginManager, LoginSession } from "../ports/login-manager.ts";
import type { SimClock } from "./clock.ts";

const configurationFile = "/etc/systemd/logind.conf.d/99-kubelet.conf";
/** Delay until a change of a lock is noticed. */
const lookMs = 50;
const maxSignals = 10;
/** How long a connection takes in a shutdown. */
const busyMs = 1000;

/** A client of the login manager: one run of podwright, which loses everything when it is killed. */
type IsAlive = () => boolean;

/**
 * The simulated machine's login manager: it announces shutdowns, and shuts down when all locks are released or time is
 * up.
 */
export class SimLoginManager {
  readonly #clock: SimClock;
  readonly #files: Pick<Files, "stat" | "read">;
  readonly #locks = new Set<{ readonly isAlive: IsAlive }>();
  readonly #signals = new Set<EventChannel<boolean>>();
  readonly #announcements = new Emitter<boolean>();
  readonly #powerOffs = new Emitter<"locks gone" | "time over">();
  #delayMaxMs: number;
  #announcedMs: number | undefined;

  constructor(clock: SimClock, files: Pick<Files, "stat" | "read">, delayMaxMs = 5000) {
    this.#clock = clock;
    this.#files = files;
    this.#delayMaxMs = delayMaxMs;
  }

  get delayMaxMs(): number {
    return this.#delayMaxMs;
  }

  /** The number of held locks. */
  get locks(): number {
    return [...this.#locks].filter(({ isAlive }) => isAlive()).length;
  }

  get isPreparing(): boolean {
    return this.#announcedMs !== undefined;
  }

  /** The machine powers off. Reports what the login manager waited for last. */
  onPowerOff(listener: (why: "locks gone" | "time over") => void): void {
    this.#powerOffs.on(listener);
  }

  /** The listener is called with each shutdown that is announced (true), and that is cancelled or over (false). */
  onAnnounced(listener: (isAnnounced: boolean) => void): void {
    this.#announcements.on(listener);
  }

  announce(): void {
    if (this.#announcedMs !== undefined) return;
    this.#announcedMs = this.#clock.nowMs;
    this.#announcements.emit(true);
    this.#tell(true);
    this.#look();
  }

  cancel(): void {
    if (this.#announcedMs === undefined) return;
    this.#announcedMs = undefined;
    this.#announcements.emit(false);
    this.#tell(false);
  }

  /** The machine has started again. */
  started(): void {
    this.#announcedMs = undefined;
    this.#announcements.emit(false);
    this.#locks.clear();
  }

  /** The login manager as one run of podwright reaches it. */
  port(isAlive: IsAlive): LoginManager {
    return {
      connect: async () => {
        const { promise, resolve } = Promise.withResolvers<void>();
        // Everything is slow while all ends.
        if (this.isPreparing) this.#clock.schedule("the system bus to answer", busyMs, resolve);
        else resolve();
        await promise;
        return new SimSession(this, isAlive);
      },
    };
  }

  async reload(): Promise<void> {
    if ((await this.#files.stat(configurationFile)) === undefined) return;
    const text = new TextDecoder().decode(await this.#files.read(configurationFile, 4096));
    const seconds = /^InhibitDelayMaxSec=(\d+)$/mu.exec(text)?.[1];
    this.#clock.schedule("logind to read its configuration", 150, () => {
      if (seconds !== undefined) this.#delayMaxMs = Number(seconds) * 1000;
    });
  }

  lock(isAlive: IsAlive): Disposable {
    if (this.isPreparing) throw new Error("the operation inhibition has been requested for is already running");
    const lock = { isAlive };
    this.#locks.add(lock);
    return { [Symbol.dispose]: () => void this.#locks.delete(lock) };
  }

  listen(): EventChannel<boolean> & Disposable {
    const signals = new EventChannel<boolean>(maxSignals);
    this.#signals.add(signals);
    return Object.assign(signals, { [Symbol.dispose]: () => void this.#signals.delete(signals) });
  }

  #tell(begins: boolean): void {
    for (const signals of this.#signals) signals.offer(begins);
  }

  #look(): void {
    if (this.#announcedMs === undefined) return;
    const isOver = this.#clock.nowMs >= this.#announcedMs + this.#delayMaxMs;
    if (this.locks === 0 || isOver) return this.#powerOffs.emit(this.locks === 0 ? "locks gone" : "time over");
    this.#clock.schedule("the login manager to look at its locks", lookMs, () => this.#look());
  }
}

class SimSession implements LoginSession {
  readonly #manager: SimLoginManager;
  readonly #isAlive: IsAlive;
  readonly #signals: EventChannel<boolean> & Disposable;

  constructor(manager: SimLoginManager, isAlive: IsAlive) {
    this.#manager = manager;
    this.#isAlive = isAlive;
    this.#signals = manager.listen();
  }

  async inhibitDelayMaxMs(): Promise<number> {
    return this.#manager.delayMaxMs;
  }

  async reloadConfiguration(): Promise<void> {
    await this.#manager.reload();
  }

  async isPreparingForShutdown(): Promise<boolean> {
    return this.#manager.isPreparing;
  }

  async delayShutdown(): Promise<Disposable> {
    return this.#manager.lock(this.#isAlive);
  }

  async *shutdowns(signal: AbortSignal): AsyncIterable<boolean> {
    while (!signal.aborted) {
      for (const begins of await this.#signals.take(signal)) if (this.#isAlive()) yield begins;
    }
  }

  [Symbol.dispose](): void {
    this.#signals[Symbol.dispose]();
  }
}
