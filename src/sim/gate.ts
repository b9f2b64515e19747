import type { Clock } from "../ports/clock.ts";
import { FileError } from "../ports/files.ts";
import type { SimRandom } from "./random.ts";

/** What goes wrong on the machine itself. */
export interface MachineFaults {
  /** Nothing can be written; what is there can be read and removed. */
  readonly diskFull: boolean;
  /** Probability that an operation on files fails. */
  readonly diskErrors: number;
  /** Operations on files take up to this. */
  readonly diskDelayMaxMs: number;
  /** Probability that an operation on mounts or cgroups fails. */
  readonly machineErrors: number;
}

export const soundMachine: MachineFaults = { diskFull: false, diskErrors: 0, diskDelayMaxMs: 0, machineErrors: 0 };

/** The kinds of ports that lead through a gate; what may go wrong differs. */
type Door = "files" | "machine" | "plain";

/** Operations on files that need room on the disk. */
const writing: ReadonlySet<string> = new Set(["write", "writeAtomic", "append", "symlink", "gzip"]);

export interface GateSettings {
  readonly clock: Clock;
  readonly random: SimRandom;
  readonly faults: () => MachineFaults;
  /** Told of each operation, before it has its effect and after: whoever listens may kill the incarnation there. */
  readonly onStep: () => void;
  readonly onFault: (kind: string) => void;
}

/**
 * The way of one incarnation of podwright to the simulated machine. After {@link kill} nothing that it asked for has an
 * effect or ever settles, as for a process that is gone.
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

  /** The port, seen through this gate: its methods that give promises. Others pass, and so do `except`. */
  through<T extends object>(port: T, door: Door, except: readonly string[] = []): T {
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
          : (...given: unknown[]): Promise<unknown> => this.#pass(door, name, given[0], () => method(...given));
        known.set(name, guarded);
        return guarded;
      },
    });
  }

  async #pass(door: Door, name: string, subject: unknown, work: () => Promise<unknown>): Promise<unknown> {
    if (!this.step()) return await never();
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

/** What a process waits for that is gone. One for each wait, so that none is kept by another. */
function never(): Promise<never> {
  return new Promise(() => {});
}
