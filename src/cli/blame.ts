import { ExitCode } from "../base/errors.ts";
import { blame } from "../journal/blame.ts";
import { renderBlame } from "../journal/render-blame.ts";
import type { CommandContext } from "./context.ts";
import { nothingRecorded, readPodJournal, selectPod } from "./journal-source.ts";

/** `podwright blame POD`: the phases of the pod's start-up, and those that delayed the first Ready. */
export async function blameCommand(
  context: CommandContext,
  selector: string,
  options: { readonly json?: true },
): Promise<ExitCode> {
  const { terminal, clock } = context;
  const journal = await readPodJournal(context, selector);
  const { entries, engineRuns } = journal;
  // Without an engine the last entry is the best estimate of the present.
  const now = engineRuns ? clock.now() : (entries.at(-1)?.time ?? 0);
  const startUp = blame(entries, selectPod(journal, selector), now);
  if (startUp === undefined) throw nothingRecorded(context, selector);
  if (options.json === true) terminal.print(JSON.stringify(startUp, undefined, 2));
  else terminal.print(renderBlame(startUp, { paint: terminal.paint }).trimEnd());
  return ExitCode.done;
}
