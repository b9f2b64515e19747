import type { Command } from "commander";
import { systemClock } from "../linux/processes/clock.ts";
import { withDeadline } from "../base/deadline.ts";
import type { PodView } from "../server/local-api.ts";
import { complete } from "./complete.ts";
import { openContext } from "./context.ts";
import type { Terminal } from "./terminal.ts";

/** A shell blocks until the completion returns. */
const limitMs = 2000;

/** `podwright complete`, which the shells' completion scripts call. Without an engine it offers no pod names. */
export async function completeCommand(terminal: Terminal, program: Command, words: readonly string[]): Promise<void> {
  const pods = async (stateDir: string | undefined): Promise<readonly PodView[]> => {
    try {
      const { engine } = await openContext(terminal, stateDir === undefined ? {} : { stateDir });
      return await withDeadline(systemClock, "names of pods", limitMs, undefined, (signal) => engine.pods(signal));
    } catch {
      return [];
    }
  };
  for (const { text, about } of await complete(program, words, pods)) {
    terminal.print(about === undefined || about === "" ? text : `${text}\t${about}`);
  }
}
