import type { Command } from "commander";
import { systemClock } from "../linux/processes/clock.ts";
import { withDeadline } from "../base/deadline.ts";
import type { ClaimView, PodView } from "../server/local-api.ts";
import { complete, shellWordMeant } from "./complete.ts";
import { openContext } from "./context.ts";
import type { EngineClient } from "./engine-client.ts";
import type { Terminal } from "./terminal.ts";

/** A shell blocks until the completion returns. */
const limitMs = 2000;

/** `podwright complete`, which the shells' completion scripts call. Without an engine it offers no pod names. */
export async function completeCommand(terminal: Terminal, program: Command, words: readonly string[]): Promise<void> {
  type Ask<T> = (engine: EngineClient, signal: AbortSignal) => Promise<readonly T[]>;
  const names =
    <T>(ask: Ask<T>) =>
    async (stateDir: string | undefined): Promise<readonly T[]> => {
      try {
        const { engine } = await openContext(terminal, stateDir === undefined ? {} : { stateDir });
        return await withDeadline(systemClock, "names", limitMs, undefined, (signal) => ask(engine, signal));
      } catch {
        return [];
      }
    };
  const asked = {
    pods: names<PodView>((engine, signal) => engine.pods(signal)),
    claims: names<ClaimView>((engine, signal) => engine.claims(signal)),
  };
  const given = words.map((word) => shellWordMeant(word, process.env["HOME"]));
  for (const { text, about } of await complete(program, given, asked)) {
    terminal.print(about === undefined || about === "" ? text : `${text}\t${about}`);
  }
}
