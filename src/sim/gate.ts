import type { Clock } from "../ports/clock.ts";
import { FileError } from "../ports/files.ts";
import type { SimRandom } from "./random.ts";

/** Faults of the machine itself. */
export interface MachineFaults {
  /** Writes fail; reads and removals work. */
  readonly diskFull: boolean;
  /** Probability that a file operation fails. */
  readonly diskErrors: number;
  /** Maximum duration of file operations. */
  readonly diskDelayMaxMs: number;
  /** Probability that a mount or cgroup operation fails. */
  readonly machineErrors: number;
}

export const soundMachine: MachineFaults = { diskFull: false, diskErrors: 0, diskDelayMaxMs: 0, machineErrors: 0 };

/** Kinds of ports behind a gate, which differ in their faults. */
type Door = "files" | "machine" | "plain";

/** File operations that need disk space. */
const writing: ReadonlySet<string> = new Set(["write", "writeAtomic", "append", "symlink", "gzip"]);

/** What an operation has done when its process is killed in the midst of it. */
type CutShort = (operation: string, subject: string) => Promise<void>;

interface Operation {
  readonly door: Door;
  readonly name: string;
  readonly subject: unknown;
  readonly cutShort: CutShort | undefined;
}

export interface GateSettings {
  readonly clock: Clock;
  readonly random: SimRandom;
  readonly faults: () => MachineFaults;
  /** Called with each operation before its effect and after; it may kill the incarnation. */
  readonly onStep: () => void;
  readonly onFault: (kind: string) => void;
}

/**
 * The access of one incarnation of podwright to the simulated machine. After {@link kill} none of its requests has an
 * effect or settles, as for a dead process.
 */
export class Gate {
  readonly #settings: GateSettings;
  #alive = true;

  constructor(settings: GateSettings) {
    this.#settings = settings;
  }

  get alive(): boolean {
    return this.#alive;
  }

  kill(): void {
    this.#alive = false;
  }

  /** One step of the incarnation; false when it is dead, or dies here. */
  step(): boolean {
    if (this.#alive) this.#settings.onStep();
    return this.#alive;
  }

  /** As long as an operation on the disk takes now. */
  async waitForDisk(): Promise<void> {
    const { clock, random, faults } = this.#settings;
    const { diskDelayMaxMs } = faults();
    if (diskDelayMaxMs > 0) await clock.sleep("the simulated disk", random.uniform() * diskDelayMaxMs);
  }

  /**
   * Wraps the port's methods that return promises; others, and those in `except`, are passed through.
   * @param cutShort what an operation leaves in which the incarnation dies
   */
  through<T extends object>(port: T, door: Door, except: readonly string[] = [], cutShort?: CutShort): T {
    const known = new Map<PropertyKey, unknown>();
    return new Proxy(port, {
      get: (target, name) => {
        const found = known.get(name);
        if (found !== undefined) return found;
        const member: unknown = Reflect.get(target, name, target);
        if (typeof member !== "function" || typeof name !== "string") return member;
        const method = member.bind(target) as (...given: unknown[]) => Promise<unknown>;
        const guarded = except.includes(name)
          ? method
          : (...given: unknown[]): Promise<unknown> =>
              this.#pass({ door, name, subject: given[0], cutShort }, () => method(...given));
        known.set(name, guarded);
        return guarded;
      },
    });
  }

  async #pass({ door, name, subject, cutShort }: Operation, work: () => Promise<unknown>): Promise<unknown> {
    const isAlive = this.#alive;
    if (!this.step()) {
      if (isAlive) await cutShort?.(name, String(subject));
      return await never();
    }
    const { clock, random, faults } = this.#settings;
    const { diskDelayMaxMs } = faults();
    if (door === "files" && diskDelayMaxMs > 0) {
      this.#settings.onFault("disk slow");
      await clock.sleep("the simulated disk", random.uniform() * diskDelayMaxMs);
    }
    this.#mayFail(door, name, String(subject));
    const value = await work();
    return this.step() ? value : await never();
  }

  #mayFail(door: Door, name: string, path: string): void {
    const { random, faults, onFault } = this.#settings;
    const { diskFull, diskErrors, machineErrors } = faults();
    if (door === "files" && diskFull && writing.has(name)) {
      onFault("disk full");
      throw new FileError("ENOSPC", path, `ENOSPC: no space left on device, ${name} '${path}'`);
    }
    if (door === "files" && diskErrors > 0 && random.chance(diskErrors)) {
      onFault("disk error");
      throw new FileError("EIO", path, `EIO: i/o error, ${name} '${path}'`);
    }
    if (door === "machine" && machineErrors > 0 && random.chance(machineErrors)) {
      onFault("machine error");
      throw new Error(`EBUSY: resource busy, ${name} '${path}'`);
    }
  }
}

/** The wait of a dead process. Each is a new promise, so that none is retained by another. */
function never(): Promise<never> {
  return new Promise(() => {});
}
