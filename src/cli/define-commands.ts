import type { Command } from "commander";
import type { StateOptions } from "./context.ts";

/** Adds commands that need a context. */
export interface Define<Context> {
  readonly program: Command;
  /** Opens the context of the command's state directory, and passes it to the command. */
  readonly run: <Options extends StateOptions>(
    work: (context: Context, options: Options, operands: readonly string[]) => Promise<number>,
  ) => (...given: unknown[]) => Promise<void>;
}
