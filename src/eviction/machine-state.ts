import type { FileSystems } from "./file-systems.ts";
import type { Observations, PressureLook } from "./pressure.ts";
import type { Signal } from "./thresholds.ts";

/** The machine at one moment. */
export interface MachineLook {
  readonly observations: Observations;
  readonly fileSystems: FileSystems;
}

/** Looks at the machine; what can't be observed is missing. @param wanted signals that thresholds are about */
export type LookAtMachine = (wanted: ReadonlySet<Signal>, signal: AbortSignal) => Promise<MachineLook>;

/** A look at the machine with what it says of the pressure that the node is under. */
export interface MachineState extends MachineLook {
  /** Monotonic ms. */
  readonly atMs: number;
  readonly pressure: PressureLook;
}
