import { dirname } from "node:path/posix";
import { errorMessage } from "../base/errors.ts";
import { type PodUid, podUid } from "../base/ids.ts";
import type { RecordFiles } from "../base/patient-files.ts";
import { removeUnfinished } from "../base/unfinished-files.ts";
import type { Clock } from "../ports/clock.ts";
import { FileError } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";

/** The stored results of one instance. Absent: unknown. */
export interface Remembered {
  readonly started?: true;
  readonly ready?: boolean;
}

/** Container instances by ID, by pod UID. */
type Pods = Map<PodUid, Map<string, Remembered>>;

const maxFileBytes = 4 << 20;
const maxPods = 4096;
/** Minimum interval of writes: closer changes are written together. */
const pauseMs = 250;
/** Delay of the retry after a failed write. */
const retryMs = 10_000;
/** How long results of an earlier run are kept for pods not seen in this one. */
const strangersMs = 10 * 60_000;

/**
 * The last startup and readiness verdicts on disk, so that a restart of podwright flips no readiness: a ready container
 * stays ready until a probe fails, and one not known to be ready becomes ready only by a probe. Liveness is not stored:
 * nothing is killed for an earlier run's result.
 *
 * An unreadable or unwritable file costs only this memory.
 */
export class ProbeMemory {
  readonly #files: RecordFiles;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #path: string;
  #pods: Pods = new Map();
  readonly #met = new Set<string>();
  readonly #beganMs: number;
  #changed = false;
  #writing: Promise<void> | undefined;
  /** Set after a failed write: a full disk is temporary. */
  #retry: Disposable | undefined;

  constructor(files: RecordFiles, clock: Clock, log: Logger, path: string) {
    this.#files = files;
    this.#clock = clock;
    this.#log = log;
    this.#path = path;
    this.#beganMs = clock.monotonic();
  }

  /** Reads the last run's results. To be called first. */
  async load(): Promise<void> {
    try {
      await removeUnfinished(this.#files, dirname(this.#path));
      this.#pods = decode(new TextDecoder().decode(await this.#files.read(this.#path, maxFileBytes)));
    } catch (error) {
      if (error instanceof FileError && error.code === "ENOENT") return;
      this.#log.warn("cannot read the last probe results", { path: this.#path, error: errorMessage(error) });
    }
  }

  get(uid: PodUid, id: string): Remembered {
    return this.#pods.get(uid)?.get(id) ?? {};
  }

  /** The pod's current instances: results of others are dropped. */
  met(uid: PodUid, ids: readonly string[]): void {
    this.#met.add(uid);
    const known = this.#pods.get(uid);
    for (const id of known?.keys() ?? []) {
      if (ids.includes(id)) continue;
      known?.delete(id);
      this.#touch();
    }
  }

  note(uid: PodUid, id: string, fact: Remembered): void {
    const known = this.#pods.get(uid) ?? new Map<string, Remembered>();
    this.#met.add(uid);
    this.#pods.set(uid, known);
    known.set(id, { ...known.get(id), ...fact });
    this.#touch();
  }

  forget(uid: PodUid): void {
    this.#met.delete(uid);
    if (this.#pods.delete(uid)) this.#touch();
  }

  /**
   * Resolves when everything noted so far is on disk or a write has failed; a failed write is not retried afterwards.
   */
  async flush(): Promise<void> {
    await this.#writing;
    this.#retry?.[Symbol.dispose]();
  }

  #touch(): void {
    this.#changed = true;
    this.#retry?.[Symbol.dispose]();
    this.#writing ??= this.#write();
  }

  async #write(): Promise<void> {
    while (this.#changed) {
      this.#changed = false;
      if (this.#clock.monotonic() - this.#beganMs > strangersMs) {
        for (const uid of this.#pods.keys()) if (!this.#met.has(uid)) this.#pods.delete(uid);
      }
      try {
        await this.#files.writeAtomic(this.#path, encode(this.#pods), 0o600);
      } catch (error) {
        this.#log.warn("cannot write probe results", { path: this.#path, error: errorMessage(error) });
        if (this.#pods.size === 0) continue;
        this.#retry = this.#clock.timer("the next write of probe results", retryMs, () => this.#touch());
      }
      if (this.#changed) await this.#clock.sleep("a write of probe results", pauseMs);
    }
    this.#writing = undefined;
  }
}

function encode(pods: Pods): string {
  const newest = [...pods].slice(-maxPods).filter(([, instances]) => instances.size > 0);
  const plain = Object.fromEntries(newest.map(([uid, instances]) => [uid, Object.fromEntries(instances)]));
  return `${JSON.stringify({ version: 1, pods: plain })}\n`;
}

/** Takes well-formed parts and drops the rest. @throws SyntaxError when it is not JSON */
function decode(text: string): Pods {
  const pods: Pods = new Map();
  const file: unknown = JSON.parse(text);
  for (const [uid, instances] of entriesOf(isObject(file) ? file["pods"] : undefined)) {
    const known = new Map<string, Remembered>();
    for (const [id, fact] of entriesOf(instances)) {
      if (!isObject(fact)) continue;
      const { started, ready } = fact;
      known.set(id, {
        ...(started === true && { started }),
        ...(typeof ready === "boolean" && { ready }),
      });
    }
    pods.set(podUid(uid), known);
  }
  return pods;
}

function entriesOf(value: unknown): [string, unknown][] {
  return isObject(value) ? Object.entries(value) : [];
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
