/** Threads that play simulated lives in parallel. */
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { Worker } from "node:worker_threads";
import type { Happening } from "../src/sim/life/happening.ts";
import { drawPlan } from "../src/sim/life/plan.ts";
import { errorText, type Problem, simulationGoesOn } from "../src/sim/life/problem.ts";
import type { Mutant } from "./sim-mutant-list.ts";
import type { LifeParts, Message, Order, Report } from "./sim-worker.ts";

/** Caches type stripping and compilation for all threads. */
const compileCache = join(dirname(import.meta.dirname), ".cache/compile");
/** CPU time after which a life counts as hanging. */
const lifeLimitMs = 60_000;
/** How much longer it may take, on a machine that has more to do. */
const longestWait = 10;

export interface PlayOptions {
  /** CPU time after which it counts as hanging. */
  readonly limitMs?: number;
  /** Called with each of its happenings, in order; also for a life that hangs. */
  readonly onHappening?: (happening: Happening) => void;
}

interface Thread {
  readonly worker: Worker;
  busy: Life | undefined;
  /** Why it ended. */
  error: Error | undefined;
}

/** A life in progress. */
interface Life {
  readonly settle: (report: Report) => void;
  /** Fails the life with a broken rule and details. */
  readonly fail: (rule: string, detail: string) => void;
  readonly onHappening: (happening: Happening) => void;
}

/** A fixed number of threads, which end when it is disposed of. */
export class SimPool implements AsyncDisposable {
  readonly size: number;
  readonly #mutant: Mutant | undefined;
  readonly #idle: Thread[] = [];
  readonly #all = new Set<Thread>();
  readonly #waiting: PromiseWithResolvers<Thread>[] = [];
  /** Why threads cannot start: nobody then waits for one. */
  #unstartable: Error | undefined;

  constructor(size = availableParallelism(), mutant?: Mutant) {
    this.size = size;
    this.#mutant = mutant;
    for (let index = 0; index < size; index++) this.#start();
  }

  /** Plays one life when a thread is free. A hang or a crash of its thread is reported as a problem. */
  async play(seed: number, parts: LifeParts = {}, options: PlayOptions = {}): Promise<Report> {
    const { limitMs = lifeLimitMs, onHappening } = options;
    const thread = this.#idle.pop() ?? (await this.#nextIdle());
    const { promise, resolve } = Promise.withResolvers<Report>();
    let lastMs = 0;
    let isOver = false;
    thread.busy = {
      settle: resolve,
      fail: (rule, detail) => {
        const hangs = { rule: "a life comes to its end", detail: `it still goes on after ${limitMs / 1000} s` };
        resolve(failed(seed, parts, { ...(isOver ? hangs : { rule, detail }), atMs: lastMs }));
      },
      onHappening: (happening) => {
        lastMs = happening.atMs;
        onHappening?.(happening);
      },
    };
    using _limit = limitWork(thread.worker, limitMs, () => {
      isOver = true;
      void thread.worker.terminate();
    });
    try {
      const order: Order = { seed, parts, isTold: onHappening !== undefined };
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- to a thread, not to a window
      thread.worker.postMessage(order);
      return await promise;
    } finally {
      thread.busy = undefined;
      if (this.#all.has(thread)) this.#free(thread);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const threads = [...this.#all];
    this.#all.clear();
    await Promise.all(threads.map(({ worker }) => worker.terminate()));
  }

  #nextIdle(): Promise<Thread> {
    const idle = Promise.withResolvers<Thread>();
    if (this.#unstartable === undefined) this.#waiting.push(idle);
    else idle.reject(this.#unstartable);
    return idle.promise;
  }

  #start(): void {
    const worker = new Worker(new URL("sim-worker.ts", import.meta.url), {
      workerData: { mutant: this.#mutant },
      env: { ...process.env, NODE_COMPILE_CACHE: compileCache },
    });
    const thread: Thread = { worker, busy: undefined, error: undefined };
    this.#all.add(thread);
    let isReady = false;
    worker.on("message", (message: Message) => {
      if (message === "ready") {
        isReady = true;
        this.#free(thread);
      } else if ("report" in message) thread.busy?.settle(message.report);
      else thread.busy?.onHappening(message.happening);
    });
    worker.on("error", (thrown) => {
      thread.error = thrown instanceof Error ? thrown : new Error(String(thrown));
      if (isReady) return;
      this.#unstartable = thread.error;
      this.#all.delete(thread);
      for (const idle of this.#waiting.splice(0)) idle.reject(this.#unstartable);
    });
    worker.on("exit", (code) => {
      // It gets no further lives.
      const isMissed = this.#all.delete(thread);
      const place = this.#idle.indexOf(thread);
      if (place >= 0) this.#idle.splice(place, 1);
      const ended = thread.error === undefined ? `its thread ended with ${code}` : errorText(thread.error);
      thread.busy?.fail(simulationGoesOn, ended);
      if (isMissed) this.#start();
    });
  }

  #free(thread: Thread): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#idle.push(thread);
    else next.resolve(thread);
  }
}

/** The report of a life whose thread cannot send one. */
function failed(seed: number, { steps }: LifeParts, problem: Problem): Report {
  const coverage = { steps: new Map(), faults: new Map(), actions: new Map(), names: new Map() };
  const plan = drawPlan(seed).filter(({ index }) => steps?.includes(index) ?? true);
  return { seed, problems: [problem], plan, simulatedMs: problem.atMs, coverage, digest: "" };
}

/** Ends a worker's work after a CPU time, or after several times that in real time. */
function limitWork(worker: Worker, limitMs: number, end: () => void): Disposable {
  const before = worker.cpuUsage();
  // A worker that has ended has no usage.
  before.catch(() => {});
  const atLatest = setTimeout(end, longestWait * limitMs);
  let timer: NodeJS.Timeout;
  let isDone = false;
  const look = async (): Promise<void> => {
    const { user, system } = await worker.cpuUsage(await before);
    const leftMs = limitMs - (user + system) / 1000;
    if (isDone) return;
    if (leftMs <= 0) end();
    else lookAfter(leftMs);
  };
  const lookAfter = (afterMs: number): void => {
    timer = setTimeout(() => void look().catch(() => {}), Math.max(afterMs, 10));
  };
  lookAfter(limitMs);
  return {
    [Symbol.dispose]: () => {
      isDone = true;
      clearTimeout(timer);
      clearTimeout(atLatest);
    },
  };
}
