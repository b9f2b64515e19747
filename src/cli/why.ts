import { ExitCode } from "../base/errors.ts";
import { why } from "../journal/explain.ts";
import { renderWhy } from "../journal/render.ts";
import type { CommandContext } from "./context.ts";
import { readJournal, selectPod } from "./journal-source.ts";

/** `podwright why POD`: the last thing that happened to the pod and to each container, its causes, and what comes next. */
export async function whyCommand(
  context: CommandContext,
  selector: string,
  options: { readonly json?: true },
): Promise<ExitCode> {
  const { terminal, clock } = context;
  const { entries } = await readJournal(context);
  const explanation = why(entries, selectPod(entries, selector));
  if (explanation === undefined) return ExitCode.failed;
  if (options.json === true) {
    terminal.print(JSON.stringify(explanation, undefined, 2));
  } else {
    const width = terminal.interactive ? terminal.columns : 100;
    terminal.print(renderWhy(explanation, { now: clock.now(), paint: terminal.paint, width }).trimEnd());
  }
  return ExitCode.done;
}
