import { ExitCode } from "../base/errors.ts";
import { timeline } from "../journal/explain.ts";
import { renderTimeline } from "../journal/render.ts";
import type { CommandContext } from "./context.ts";
import { nothingRecorded, readPodJournal, selectPod } from "./journal-source.ts";

/** `podwright timeline POD`: the pod's history in order, across restarts of podwright. */
export async function timelineCommand(
  context: CommandContext,
  selector: string,
  options: { readonly json?: true },
): Promise<ExitCode> {
  const { terminal, clock } = context;
  const journal = await readPodJournal(context, selector);
  const life = timeline(journal.entries, selectPod(journal, selector));
  if (life === undefined) throw nothingRecorded(context, selector);
  if (options.json === true) {
    terminal.print(JSON.stringify(life, undefined, 2));
  } else {
    const width = terminal.interactive ? terminal.columns : 120;
    terminal.print(renderTimeline(life, { now: clock.now(), paint: terminal.paint, width }).trimEnd());
  }
  return ExitCode.done;
}
