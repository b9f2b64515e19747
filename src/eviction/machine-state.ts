import type { FileSystems } from "./file-systems.ts";
import type { Observations, PressureLook } from "./pressure.ts";
import type { Signal } from "./thresholds.ts";

/** The machine at one moment. */
export interface MachineLook {
  readonly observations: Observations;
  /** Undefined: not known. */
  readonly fileSystems: FileSystems | undefined;
  /** Why each source that was not measured was not: its signals are missing. */
  readonly unmeasured: ReadonlyMap<string, string>;
}

/** Observes the machine; unobservable signals are omitted. @param wanted signals with thresholds */
export type LookAtMachine = (wanted: ReadonlySet<Signal>, signal: AbortSignal) => Promise<MachineLook>;

/** An observation and the resulting pressure. */
export interface MachineState extends MachineLook {
  /** When the observation began and ended, monotonic ms: its figures may be as old as its beginning. */
  readonly beganMs: number;
  readonly atMs: number;
  readonly pressure: PressureLook;
}
