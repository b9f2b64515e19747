/** Threads that play simulated lives side by side. */
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { Worker } from "node:worker_threads";
import type { LifeOptions } from "../src/sim/life/life.ts";
import type { Mutant } from "./sim-mutant-list.ts";
import type { Order, Report } from "./sim-worker.ts";

/** What type stripping and compiling found out: each thread would do it again. */
const compileCache = join(dirname(import.meta.dirname), ".cache/compile");
/** Real time after which a life is taken to hang. */
const lifeLimitMs = 120_000;

interface Thread {
  readonly worker: Worker;
  busy: { readonly settle: (report: Report) => void; readonly fail: (error: Error) => void } | undefined;
}

/** A fixed number of threads. Dispose of it to end them. */
export class SimPool implements AsyncDisposable {
  readonly size: number;
  readonly #mutant: Mutant | undefined;
  readonly #idle: Thread[] = [];
  readonly #all = new Set<Thread>();
  readonly #waiting: PromiseWithResolvers<Thread>[] = [];
  /** Why threads can't even start: nobody waits for one then. */
  #unstartable: Error | undefined;

  constructor(size = availableParallelism(), mutant?: Mutant) {
    this.size = size;
    this.#mutant = mutant;
    for (let index = 0; index < size; index++) this.#start();
  }

  /** Plays one life when a thread is free. A life that hangs or crashes its thread is a problem of its own. */
  async play(seed: number, options: LifeOptions = {}): Promise<Report> {
    const thread = this.#idle.pop() ?? (await this.#nextIdle());
    const { promise, resolve, reject } = Promise.withResolvers<Report>();
    thread.busy = { settle: resolve, fail: reject };
    const limit = setTimeout(() => void thread.worker.terminate(), lifeLimitMs);
    try {
      const order: Order = { seed, options };
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- to a thread, not to a window
      thread.worker.postMessage(order);
      return await promise;
    } catch (error) {
      return failed(seed, error instanceof Error ? error.message : String(error));
    } finally {
      clearTimeout(limit);
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
    const thread: Thread = { worker, busy: undefined };
    this.#all.add(thread);
    let isReady = false;
    worker.on("message", (message: Report | "ready") => {
      if (message !== "ready") return thread.busy?.settle(message);
      isReady = true;
      this.#free(thread);
    });
    worker.on("error", (thrown) => {
      const error = thrown instanceof Error ? thrown : new Error(String(thrown));
      thread.busy?.fail(error);
      if (isReady) return;
      this.#unstartable = error;
      this.#all.delete(thread);
      for (const idle of this.#waiting.splice(0)) idle.reject(error);
    });
    worker.on("exit", () => {
      thread.busy?.fail(new Error(`a life took more than ${lifeLimitMs / 1000} s, or its thread ended`));
      if (this.#all.delete(thread)) this.#start();
    });
  }

  #free(thread: Thread): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#idle.push(thread);
    else next.resolve(thread);
  }
}

function failed(seed: number, detail: string): Report {
  const coverage = { steps: new Map(), faults: new Map(), actions: new Map() };
  const problems = [{ rule: "the simulation goes on", detail, atMs: 0 }];
  return { seed, problems, plan: [], simulatedMs: 0, coverage, digest: "" };
}
