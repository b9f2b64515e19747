import { errorMessage } from "../base/errors.ts";
import { Semaphore } from "../base/semaphore.ts";
import type { Cause, PodRef, Recorder } from "../journal/entry.ts";
import { type ActionInput, perform } from "../journal/perform.ts";
import type { Clock } from "../ports/clock.ts";
import type { Compression } from "../ports/compression.ts";
import type { Cri } from "../ports/cri.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import { packedSuffix, planRotation, temporarySuffix } from "./rotated-names.ts";

/** What is done to a log, without whose it is. */
type LogAction = Pick<ActionInput, "what" | "message" | "cause"> & Required<Pick<ActionInput, "data">>;

export interface LogRotationConfig {
  /** A log of at least so many bytes is rotated (containerLogMaxSize, 10 Mi); negative: never. */
  readonly maxSizeBytes: number;
  /** Files of one log, the one that is written included (containerLogMaxFiles, 5). */
  readonly maxFiles: number;
  /** Files that are packed at a time (containerLogMaxWorkers, 1); renaming waits for nobody. */
  readonly maxWorkers: number;
  /** Between two looks at the sizes (containerLogMonitorInterval, 10 s). */
  readonly monitorIntervalMs: number;
}

/** The log of a running container. */
export interface RunningLog {
  readonly pod: PodRef;
  readonly container: string;
  readonly containerId: string;
  /** As the runtime writes it. */
  readonly path: string;
}

export interface LogRotationDependencies {
  readonly clock: Clock;
  readonly files: Pick<Files, "stat" | "list" | "rename" | "remove">;
  readonly compression: Pick<Compression, "gzip">;
  readonly runtime: Pick<Cri["runtime"], "reopenContainerLog">;
  readonly journal: Recorder;
  readonly log: Logger;
  /** Logs of this node's running containers. Those that have ended grow no more. */
  readonly running: () => readonly RunningLog[];
}

/** By container: when something was last told of it, and how often it was not since. */
type Told = Map<string, { readonly atMs: number; untold: number }>;

/** A container that floods its log fills neither the disk nor the journal: one rotation in this time is told. */
const toldEveryMs = 10 * 60_000;

/**
 * Keeps container logs small (upstream's ContainerLogManager): renames what has grown too long, lets the runtime begin a new file, packs the
 * older ones and removes the oldest. Containers do not wait for each other.
 */
export class LogRotation {
  readonly #deps: LogRotationDependencies;
  readonly #config: LogRotationConfig;
  readonly #packing: Semaphore;
  /** Containers of which the log is being worked on. */
  readonly #busy = new Map<string, Promise<void>>();
  readonly #told: Told = new Map();
  readonly #failures: Told = new Map();

  constructor(deps: LogRotationDependencies, config: LogRotationConfig) {
    this.#deps = deps;
    this.#config = config;
    this.#packing = new Semaphore(config.maxWorkers);
  }

  /** Looks again and again until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    if (this.#config.maxSizeBytes < 0) return;
    while (!signal.aborted) {
      this.look(signal);
      await this.#deps.clock.sleep("next check of log sizes", this.#config.monitorIntervalMs, signal).catch(() => {});
    }
    await Promise.all(this.#busy.values());
  }

  /** One look at all sizes; what has to be done goes on behind it. */
  look(signal: AbortSignal): void {
    const running = this.#deps.running();
    const ids = new Set(running.map(({ containerId }) => containerId));
    for (const told of [this.#told, this.#failures]) {
      for (const id of told.keys()) if (!ids.has(id)) told.delete(id);
    }
    for (const log of running) {
      if (this.#busy.has(log.containerId)) continue;
      const work = this.#check(log, signal)
        .catch((error: unknown) => this.#failed(log, error, signal))
        .finally(() => this.#busy.delete(log.containerId));
      this.#busy.set(log.containerId, work);
    }
  }

  /** Resolves when nothing is being worked on. */
  async idle(): Promise<void> {
    await Promise.all(this.#busy.values());
  }

  async #check(log: RunningLog, signal: AbortSignal): Promise<void> {
    const info = await this.#deps.files.stat(log.path);
    if (info === undefined) {
      // An earlier life ended between renaming and reopening, or somebody removed it: the container writes to no name.
      await this.#reopen(log, { code: "LogMissing", message: `log file ${log.path} does not exist` }, signal);
      return;
    }
    if (info.type !== "file") throw new Error(`${log.path} is a ${info.type}, not the file that the runtime writes`);
    if (info.size < this.#config.maxSizeBytes) return;
    await this.#rotate(log, info.size, signal);
  }

  async #rotate(log: RunningLog, size: number, signal: AbortSignal): Promise<void> {
    const { files, clock } = this.#deps;
    const slash = log.path.lastIndexOf("/");
    const directory = log.path.slice(0, slash);
    const names = (await files.list(directory)).map((entry) => entry.name);
    const plan = planRotation(names, log.path.slice(slash + 1), this.#config.maxFiles, clock.now());
    const since = this.#told.get(log.containerId)?.untold ?? 0;
    const before = since > 0 ? `; ${since} earlier rotations were not recorded` : "";
    const action: LogAction = {
      what: "RotateLog",
      message: `rotate the log of container ${log.container}`,
      cause: {
        code: "LogSize",
        message: `it has ${size} bytes, the limit is ${this.#config.maxSizeBytes}${before}`,
      },
      data: { size, rotatedTo: plan.rotatedName, removed: plan.remove.length },
    };
    await this.#tell(log, action, async () => {
      for (const name of plan.remove) await files.remove(`${directory}/${name}`);
      await this.#replace(log, `${directory}/${plan.rotatedName}`, signal);
    });
    for (const name of plan.pack) await this.#pack(`${directory}/${name}`, signal);
  }

  async #replace(log: RunningLog, rotated: string, signal: AbortSignal): Promise<void> {
    const { files, runtime } = this.#deps;
    await files.rename(log.path, rotated);
    try {
      await runtime.reopenContainerLog({ containerId: log.containerId }, { signal });
    } catch (error) {
      // When a new file is there the runtime has done it, whatever it said: taking its name away would lose lines.
      if ((await files.stat(log.path)) === undefined) await files.rename(rotated, log.path);
      throw error;
    }
  }

  async #reopen(log: RunningLog, cause: Cause, signal: AbortSignal): Promise<void> {
    const message = `ask the runtime to reopen the log of container ${log.container}`;
    await this.#tell(log, { what: "ReopenLog", message, cause, data: {} }, async () => {
      await this.#deps.runtime.reopenContainerLog({ containerId: log.containerId }, { signal });
    });
  }

  /** A reader finds the file under one name or the other at every moment. */
  async #pack(path: string, signal: AbortSignal): Promise<void> {
    const { files, compression } = this.#deps;
    using _place = await this.#packing.acquire(signal);
    const info = await files.stat(path);
    if (info === undefined) return;
    await compression.gzip(path, path + temporarySuffix, info.mode, signal);
    await files.rename(path + temporarySuffix, path + packedSuffix);
    await files.remove(path);
  }

  /** Does the work, as an action of the journal unless one was told of this container a short while ago. */
  async #tell(log: RunningLog, action: LogAction, work: () => Promise<void>): Promise<void> {
    if (!this.#mayTell(this.#told, log)) return work();
    const { journal, clock } = this.#deps;
    const data = { id: log.containerId, ...action.data };
    await perform(journal, clock, { ...action, pod: log.pod, container: log.container, data }, work);
  }

  #mayTell(told: Told, { containerId }: RunningLog): boolean {
    const now = this.#deps.clock.monotonic();
    const last = told.get(containerId);
    if (last !== undefined && now - last.atMs < toldEveryMs) {
      last.untold++;
      return false;
    }
    told.set(containerId, { atMs: now, untold: 0 });
    return true;
  }

  #failed(log: RunningLog, error: unknown, signal: AbortSignal): void {
    if (signal.aborted) return;
    const { pod, container, path } = log;
    const fields = { ...pod, container, path, error: errorMessage(error) };
    // The next look tries again; meanwhile the same failure again is news to nobody.
    if (this.#mayTell(this.#failures, log)) this.#deps.log.warn("cannot rotate a container log", fields);
    else this.#deps.log.debug("cannot rotate a container log", fields);
  }
}
