import type { CommandEnd } from "./command.ts";
import type { FakeEngine } from "./fake-engine.ts";

/** A state directory with an engine that answers there, and another one where none does. */
export interface OptionWorld {
  readonly stateDirectory: string;
  readonly engine: FakeEngine;
  /** `path?query` of what was asked of the kubelet's API beside the engine's. */
  readonly asked: string[];
}

/** What an option does, seen from outside. */
export interface OptionRow {
  /** `command --option` */
  readonly shows: string;
  /** `@` is the directory with the files of the test. */
  readonly line: string;
  /** The command stays until its output matches. */
  readonly until?: RegExp;
  /** Expected of standard output, unless it is standard error that tells. */
  readonly out?: RegExp | string;
  readonly error?: RegExp;
  /** Unless 0; of `doctor`, which looks at this machine, whatever it is. */
  readonly exitCode?: number;
  readonly asks?: RegExp;
  readonly check?: (world: OptionWorld, end: CommandEnd) => void;
}
