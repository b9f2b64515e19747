import type { Command } from "commander";
import type { StateOptions } from "./context.ts";

/** What adds commands that work in a context. */
export interface Define<Context> {
  readonly program: Command;
  /** Opens the context of the given state directory for the command. */
  readonly run: <Options extends StateOptions>(
    work: (context: Context, options: Options, operands: readonly string[]) => Promise<number>,
  ) => (...given: unknown[]) => Promise<void>;
}
