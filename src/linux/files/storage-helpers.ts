import { type ChildProcess, fork } from "node:child_process";
import { Places } from "../../base/places.ts";
import { systemClock } from "../processes/clock.ts";
import type { FarStorage } from "./far-storage.ts";
import { hangsMs, Lane } from "./lane.ts";
import { noAnswer } from "./remote-storage.ts";
import type { VolumeCalls } from "./volume-calls.ts";

/** What can be asked of a helper. */
interface HelperCalls extends Omit<VolumeCalls, "openBeneath"> {
  openBeneath(...args: Parameters<VolumeCalls["openBeneath"]>): Promise<HelperOpened>;
  /** What `openBeneath` opened. */
  close(): Promise<void>;
}

type CallName = keyof HelperCalls;
type CallArguments<K extends CallName> = Parameters<HelperCalls[K]>;
type CallResult<K extends CallName> = Awaited<ReturnType<HelperCalls[K]>>;

/** Open in the helper until it is closed there. */
export interface HelperOpened {
  readonly mountSource: string;
  readonly isDirectory: boolean;
  readonly device: number;
  readonly inode: number;
}

/** What a helper gets. */
export type HelperCall = { [K in CallName]: { readonly what: K; readonly with: CallArguments<K> } }[CallName];
/** What it says. */
export type HelperAnswer = { readonly value: unknown } | { readonly code: string; readonly message: string };

/** Of the bundle, or of the sources. */
const program = new URL(`storage-helper.${import.meta.url.endsWith(".ts") ? "ts" : "js"}`, import.meta.url);
/** It holds little, and for a short time. */
const flags = ["--disable-warning=ExperimentalWarning", "--max-semi-space-size=1", "--max-old-space-size=32"];
/** To start takes it a tenth of a second, on a slow and busy machine a hundred times as long. */
const startLimitMs = 60_000;
/** A process that nobody has needed for this time ends. */
const idleMs = 10_000;
/** File systems without calls are forgotten when there are more. */
const maxIdleLanes = 100;

interface Call {
  readonly answer: Promise<unknown>;
  /** Settles with the answer, or when the killed process, which the kernel may hold, is gone. */
  readonly ended: Promise<void>;
}

/** A process for one call at a time. */
class Helper {
  /** Settles once it can be asked, or cannot be run. */
  readonly started: Promise<void>;
  readonly #child: ChildProcess;
  readonly #exited: Promise<void>;
  #isOver = false;
  #settle: ((answer: HelperAnswer) => void) | undefined;
  #idle: NodeJS.Timeout | undefined;

  constructor() {
    this.#child = fork(program, [], {
      ...{ execArgv: flags, serialization: "advanced", detached: true, cwd: "/" },
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#exited = promise;
    const started = Promise.withResolvers<unknown>();
    this.started = started.promise.then(() => {});
    this.started.catch(() => {});
    const limit = systemClock.timer("the process that works in storage to start", startLimitMs, () => this.end());
    this.#settle = (answer) => {
      limit[Symbol.dispose]();
      settle(answer, started);
    };
    const over = (message: string): void => {
      this.#isOver = true;
      this.#settle?.({ code: "EIO", message: `EIO: the process that works in storage ${message}` });
      resolve();
    };
    this.#child.on("message", (answer: HelperAnswer) => this.#settle?.(answer));
    this.#child.once("exit", () => over("has ended"));
    // Also for each signal that cannot be sent.
    this.#child.on("error", (error) => over(`cannot be run: ${error.message}`));
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  call<K extends CallName>(what: K, args: CallArguments<K>, storage: FarStorage): Call {
    const sinceMs = systemClock.monotonic();
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const answered = Promise.withResolvers<void>();
    this.#child.ref();
    this.#child.channel?.ref();
    const limit = systemClock.timer(`storage at ${storage.target} to answer`, hangsMs, () => {
      reject(noAnswer(storage.target, sinceMs));
      this.end();
    });
    this.#settle = (answer) => {
      limit[Symbol.dispose]();
      this.#settle = undefined;
      answered.resolve();
      settle(answer, { resolve, reject });
    };
    if (this.#isOver || !this.#child.connected) this.end();
    else this.#child.send({ what, with: args }, (error) => error !== null && this.end());
    return { answer: promise, ended: Promise.race([answered.promise, this.#exited]) };
  }

  /** Nothing is asked of it now: it keeps nobody alive, and ends soon. */
  rest(isDismissed: () => void): void {
    this.#release();
    this.#idle = setTimeout(() => {
      isDismissed();
      this.end();
    }, idleMs).unref();
  }

  /** It will be asked. */
  wake(): void {
    clearTimeout(this.#idle);
  }

  /** A process blocked in the kernel survives this; nothing waits for it. */
  end(): void {
    this.#isOver = true;
    this.#child.kill("SIGKILL");
    this.#release();
  }

  #release(): void {
    this.#child.unref();
    this.#child.channel?.unref();
  }
}

function settle(
  answer: HelperAnswer,
  { resolve, reject }: Pick<PromiseWithResolvers<unknown>, "resolve" | "reject">,
): void {
  if ("value" in answer) resolve(answer.value);
  else reject(Object.assign(new Error(answer.message), { code: answer.code }));
}

/** A helper that is the holder's until it is given back. */
interface Lease extends Disposable {
  readonly helper: Helper;
}

/**
 * Short work in storage that may hang, by processes of their own: what hangs takes none of the threads that Node.js has
 * for all file work, can be killed, and does not keep podwright from ending. A file system has one call at a time, so that
 * at most one process hangs in it; while one does, others for it are refused, and for it alone.
 */
class StorageHelpers {
  readonly #places = new Places(
    { clock: systemClock },
    { kind: "a process that works in storage", limit: 4, patienceMs: 2_000 },
  );
  readonly #idle = new Set<Helper>();
  readonly #lanes = new Map<string, Lane>();

  /**
   * @returns the result with the helper that has made the call
   * @throws FileError `ETIMEDOUT` if the storage does not respond; the errors of the call
   */
  async ask<K extends CallName>(
    storage: FarStorage,
    what: K,
    args: CallArguments<K>,
  ): Promise<{ readonly result: CallResult<K>; readonly lease: Lease }> {
    let lease: Lease | undefined;
    try {
      const helper = async (): Promise<Helper> => (lease = await this.#lease()).helper;
      const result = await this.askOne(helper, storage, what, args);
      if (lease === undefined) throw new Error("a call was made without a process");
      return { result, lease };
    } catch (error) {
      lease?.[Symbol.dispose]();
      throw error;
    }
  }

  /** Asks a certain helper, which is the caller's. */
  async askOne<K extends CallName>(
    helper: () => Promise<Helper>,
    storage: FarStorage,
    what: K,
    args: CallArguments<K>,
  ): Promise<CallResult<K>> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const work = async (begin: () => void): Promise<void> => {
      const asked = await helper();
      begin();
      const { answer, ended } = asked.call(what, args, storage);
      answer.then(resolve, reject);
      await ended;
    };
    // It keeps its lane when nothing waits for it any more.
    void this.#laneOf(storage).run(work).catch(reject);
    return (await promise) as CallResult<K>;
  }

  #laneOf({ lane: name, target }: FarStorage): Lane {
    let lane = this.#lanes.get(name);
    // Another file system may have got its number.
    if (lane === undefined || (lane.isIdle && lane.target !== target)) {
      if (this.#lanes.size >= maxIdleLanes) this.#forgetIdle();
      lane = new Lane(systemClock, { device: name, target });
      this.#lanes.set(name, lane);
    }
    lane.throwIfHanging();
    return lane;
  }

  #forgetIdle(): void {
    for (const [name, { isIdle }] of this.#lanes) if (isIdle) this.#lanes.delete(name);
  }

  /** The processes are few: on a node with many volumes they would all be started at once. */
  async #lease(): Promise<Lease> {
    const place = await this.#places.take("later", AbortSignal.any([]));
    const helper = await this.#helper().catch((error: unknown) => {
      place[Symbol.dispose]();
      throw error;
    });
    let isGiven = false;
    return {
      helper,
      [Symbol.dispose]: () => {
        if (isGiven) return;
        isGiven = true;
        place[Symbol.dispose]();
        if (helper.isOver) return;
        helper.rest(() => this.#idle.delete(helper));
        this.#idle.add(helper);
      },
    };
  }

  async #helper(): Promise<Helper> {
    for (const idle of this.#idle) {
      this.#idle.delete(idle);
      idle.wake();
      if (!idle.isOver) return idle;
    }
    const helper = new Helper();
    await helper.started;
    return helper;
  }
}

const helpers = new StorageHelpers();

/**
 * Does short work in storage that may hang.
 * @throws FileError `ETIMEDOUT` without a response; the errors of the work
 */
export async function inStorage<K extends Exclude<CallName, "openBeneath" | "close">>(
  storage: FarStorage,
  what: K,
  ...args: CallArguments<K>
): Promise<CallResult<K>> {
  const { result, lease } = await helpers.ask(storage, what, args);
  lease[Symbol.dispose]();
  return result;
}

/** Held open by a process of its own. */
export interface HeldInStorage extends HelperOpened, AsyncDisposable {
  /** What exists at a path, by the same process. */
  readonly identityOf: (path: string) => Promise<CallResult<"identityOf">>;
}

/** Opens a path beneath a volume's root as `inStorage` does short work. */
export async function openInStorage(storage: FarStorage, root: string, relativePath: string): Promise<HeldInStorage> {
  const { result, lease } = await helpers.ask(storage, "openBeneath", [root, relativePath]);
  return {
    ...result,
    identityOf: async (path) => await helpers.askOne(async () => lease.helper, storage, "identityOf", [path]),
    [Symbol.asyncDispose]: async () => {
      // Not after another's call that hangs. With the process everything is closed.
      await lease.helper.call("close", [], storage).answer.catch(() => lease.helper.end());
      lease[Symbol.dispose]();
    },
  };
}
