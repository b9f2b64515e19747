import type { CommandEnd } from "./command.ts";
import type { FakeEngine } from "./fake-engine.ts";

/** A state directory with a running engine, and another one without. */
export interface OptionWorld {
  readonly stateDirectory: string;
  readonly engine: FakeEngine;
  /** `path?query` of requests to the kubelet's API, in addition to the engine's. */
  readonly asked: string[];
}

/** The observable effect of an option. */
export interface OptionRow {
  /** `command --option` */
  readonly shows: string;
  /** `@` is the directory with the files of the test. */
  readonly line: string;
  /** The command keeps running until its output matches. */
  readonly until?: RegExp;
  /** Expected on standard output, or on standard error. */
  readonly out?: RegExp | string;
  readonly error?: RegExp;
  /** Default 0; for `doctor`, which checks this machine, any. */
  readonly exitCode?: number;
  readonly asks?: RegExp;
  readonly check?: (world: OptionWorld, end: CommandEnd) => void;
}
