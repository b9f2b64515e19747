import { ExitCode } from "../base/errors.ts";
import type { JournalEntry, PodRef } from "../journal/entry.ts";
import { type Explanation, unrecorded, why } from "../journal/explain.ts";
import { renderWhy } from "../journal/render.ts";
import { lastStartSeq } from "../journal/steps.ts";
import type { Health, PodView } from "../server/local-api.ts";
import { verdict } from "../server/verdict.ts";
import type { CommandContext } from "./context.ts";
import { EngineGone } from "./engine-client.ts";
import { type JournalSnapshot, nothingRecorded, readPodJournal, selectPod } from "./journal-source.ts";
import { ownProgram } from "./own-command.ts";

/**
 * `podwright why POD`: the pod's state in one line, the last event of the pod and of each container, its causes, and what
 * comes next.
 */
export async function whyCommand(
  context: CommandContext,
  selector: string,
  options: { readonly json?: true },
): Promise<ExitCode> {
  const { terminal, clock } = context;
  const [journal, views] = await Promise.all([readPodJournal(context, selector), podViews(context)]);
  const listed = journal.engineRuns ? views : undefined;
  const explanation = explain(journal, selectPod(journal, selector), listed?.pods);
  if (explanation === undefined) throw nothingRecorded(context, selector);
  const line = verdictOf(explanation, journal.entries, listed, clock.now());
  if (options.json === true) {
    terminal.print(JSON.stringify({ verdict: line, ...explanation }, undefined, 2));
  } else {
    const width = terminal.interactive ? terminal.columns : 100;
    const text = renderWhy(explanation, { now: clock.now(), paint: terminal.paint, width }).trimEnd();
    terminal.print(`${terminal.paint.strong(line)}\n${text}`);
    const names = namesOf(explanation);
    const asked = `${ownProgram()} explain ${names.join(" ")}`;
    if (names.length > 0) terminal.print(terminal.paint.faint(`\nmeanings: ${asked}`));
  }
  return ExitCode.done;
}

/** Of a pod without entries, what is known without them. @param views the pods that the engine lists */
export function explain(
  { entries, refs }: Pick<JournalSnapshot, "entries" | "refs">,
  selected: Partial<PodRef>,
  views: readonly PodView[] = [],
): Explanation | undefined {
  const found = why(entries, selected);
  if (found !== undefined) return found;
  const view = views.find(({ uid }) => uid === selected.uid);
  // It may have gone since the engine named it.
  return view && refs.some(({ uid }) => uid === view.uid) ? unrecorded(view, view.createdAt) : undefined;
}

/** The names of the last events and of the next steps, each once. */
function namesOf({ subjects }: Explanation): string[] {
  return [...new Set(subjects.flatMap(({ last, next }) => [last.what, ...(next === undefined ? [] : [next.what])]))];
}

/** The pods that the engine lists, and whether it may not list all of them yet. */
interface Listed {
  readonly pods: readonly PodView[];
  readonly health: Pick<Health, "knowsAllPods" | "unlisted">;
}

/** Undefined without an engine. */
async function podViews({ engine }: CommandContext): Promise<Listed | undefined> {
  try {
    // In this order: what is known then is listed afterwards.
    const health = await engine.health();
    return { health, pods: await engine.pods() };
  } catch (error) {
    if (!(error instanceof EngineGone)) throw error;
    return undefined;
  }
}

const notKnownYet = "Unknown: podwright is starting, and does not know this pod yet; showing the last recorded state";

/** @param listed undefined: without an engine */
export function verdictOf(
  { incarnation }: Pick<Explanation, "incarnation">,
  entries: readonly JournalEntry[],
  listed: Listed | undefined,
  now: number,
): string {
  if (listed === undefined) return "Unknown: no engine is running; showing the last recorded state";
  const { uid } = incarnation.pod;
  const { pods, health } = listed;
  const pod = pods.find((view) => view.uid === uid);
  if (pod === undefined) {
    if (!health.knowsAllPods && (health.unlisted?.includes(uid) ?? true)) return notKnownYet;
    return "Gone: the pod is no longer on this node";
  }
  const own = entries.filter((entry) => entry.pod?.uid === uid);
  const nodeEntries = entries.filter((entry) => entry.pod === undefined);
  return verdict({ pod, entries: own, nodeEntries, listed: pods, startSeq: lastStartSeq(entries), now });
}
