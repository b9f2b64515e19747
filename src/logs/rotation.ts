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

/** A journal action on a log. */
type LogAction = Pick<ActionInput, "what" | "message" | "cause"> & Required<Pick<ActionInput, "data">>;

export interface LogRotationConfig {
  /** Minimum size for a rotation (containerLogMaxSize, 10 Mi); negative: never. */
  readonly maxSizeBytes: number;
  /** Files of one log, including the current one (containerLogMaxFiles, 5). */
  readonly maxFiles: number;
  /** Files compressed concurrently (containerLogMaxWorkers, 1); renaming is not limited. */
  readonly maxWorkers: number;
  /** Interval of size checks (containerLogMonitorInterval, 10 s). */
  readonly monitorIntervalMs: number;
}

/** The log of a running container. */
export interface RunningLog {
  readonly pod: PodRef;
  readonly container: string;
  readonly containerId: string;
  /** The runtime's path. */
  readonly path: string;
}

export interface LogRotationDependencies {
  readonly clock: Clock;
  readonly files: Pick<Files, "stat" | "list" | "rename" | "remove">;
  readonly compression: Pick<Compression, "gzip">;
  readonly runtime: Pick<Cri["runtime"], "reopenContainerLog">;
  readonly journal: Recorder;
  readonly log: Logger;
  /** Logs of this node's running containers. Those of exited ones grow no more. */
  readonly running: () => readonly RunningLog[];
}

/** By container: time of the last journal entry, and the number of suppressed ones. */
type Reports = Map<string, { readonly atMs: number; unreported: number }>;

/**
 * A container that floods its log must fill neither the disk nor the journal: one rotation in this time is recorded.
 */
const reportedEveryMs = 10 * 60_000;

/**
 * Rotates container logs (upstream's ContainerLogManager): renames large files, asks the runtime to reopen them,
 * compresses the older ones and removes the oldest. Containers are independent.
 */
export class LogRotation {
  readonly #deps: LogRotationDependencies;
  readonly #config: LogRotationConfig;
  readonly #packing: Semaphore;
  /** Containers whose log is being processed. */
  readonly #busy = new Map<string, Promise<void>>();
  readonly #rotations: Reports = new Map();
  readonly #failures: Reports = new Map();

  constructor(deps: LogRotationDependencies, config: LogRotationConfig) {
    this.#deps = deps;
    this.#config = config;
    this.#packing = new Semaphore(config.maxWorkers);
  }

  /** Checks periodically until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    if (this.#config.maxSizeBytes < 0) return;
    while (!signal.aborted) {
      this.look(signal);
      await this.#deps.clock.sleep("next check of log sizes", this.#config.monitorIntervalMs, signal).catch(() => {});
    }
    await Promise.all(this.#busy.values());
  }

  /** One check of all sizes; rotations run in the background. */
  look(signal: AbortSignal): void {
    const running = this.#deps.running();
    const ids = new Set(running.map(({ containerId }) => containerId));
    for (const reports of [this.#rotations, this.#failures]) {
      for (const id of reports.keys()) if (!ids.has(id)) reports.delete(id);
    }
    for (const log of running) {
      if (this.#busy.has(log.containerId)) continue;
      const work = this.#check(log, signal)
        .catch((error: unknown) => this.#failed(log, error, signal))
        .finally(() => this.#busy.delete(log.containerId));
      this.#busy.set(log.containerId, work);
    }
  }

  /** Resolves when no rotation is running. */
  async idle(): Promise<void> {
    await Promise.all(this.#busy.values());
  }

  async #check(log: RunningLog, signal: AbortSignal): Promise<void> {
    const info = await this.#deps.files.stat(log.path);
    if (info === undefined) {
      // An earlier run stopped between renaming and reopening, or the file was removed: the container writes to an
      // unlinked file.
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
    const since = this.#rotations.get(log.containerId)?.unreported ?? 0;
    const before = since > 0 ? `; ${since} earlier rotations were not recorded` : "";
    const action: LogAction = {
      what: "RotateLog",
      message: `rotate the log of container ${log.container}`,
      cause: {
        code: "LogSize",
        message: `the log has ${size} bytes, the limit is ${this.#config.maxSizeBytes}${before}`,
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
      // If the new file exists the runtime has reopened it, whatever it returned: undoing the rename would lose lines.
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

  /** At every moment a reader finds the file under one of its two names. */
  async #pack(path: string, signal: AbortSignal): Promise<void> {
    const { files, compression } = this.#deps;
    using _place = await this.#packing.acquire(signal);
    const info = await files.stat(path);
    if (info === undefined) return;
    await compression.gzip(path, path + temporarySuffix, info.mode, signal);
    await files.rename(path + temporarySuffix, path + packedSuffix);
    await files.remove(path);
  }

  /** Does the work, as a journal action unless one of this container was recorded recently. */
  async #tell(log: RunningLog, action: LogAction, work: () => Promise<void>): Promise<void> {
    if (!this.#mayTell(this.#rotations, log)) return work();
    const { journal, clock } = this.#deps;
    const data = { id: log.containerId, ...action.data };
    await perform(journal, clock, { ...action, pod: log.pod, container: log.container, data }, work);
  }

  #mayTell(reports: Reports, { containerId }: RunningLog): boolean {
    const now = this.#deps.clock.monotonic();
    const last = reports.get(containerId);
    if (last !== undefined && now - last.atMs < reportedEveryMs) {
      last.unreported++;
      return false;
    }
    reports.set(containerId, { atMs: now, unreported: 0 });
    return true;
  }

  #failed(log: RunningLog, error: unknown, signal: AbortSignal): void {
    if (signal.aborted) return;
    const { pod, container, path } = log;
    const fields = { ...pod, container, path, error: errorMessage(error) };
    // The next check retries; the same failure again is logged at debug level.
    if (this.#mayTell(this.#failures, log)) this.#deps.log.warn("cannot rotate a container log", fields);
    else this.#deps.log.debug("cannot rotate a container log", fields);
  }
}
