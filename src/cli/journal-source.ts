import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { JournalEntry, PodRef } from "../journal/entry.ts";
import { incarnations } from "../journal/explain.ts";
import { defaultJournalLimits } from "../journal/journal.ts";
import { printable } from "../journal/text.ts";
import { SegmentLog } from "../journal/segments.ts";
import { FileError } from "../ports/files.ts";
import { noSuchPod } from "../server/pod-selector.ts";
import type { CommandContext } from "./context.ts";
import { version } from "../base/version.ts";
import { requireStateFormat } from "../private-runtime/state-format.ts";
import { EngineGone } from "./engine-client.ts";
import { ownCommand } from "./own-command.ts";

/** The journal of a running engine, or the one that the last engine left on disk. */
export interface JournalSnapshot {
  readonly entries: readonly JournalEntry[];
  readonly engineRuns: boolean;
  /** The selected pods that the engine knows: also one of which the journal has no entry any more. */
  readonly refs: readonly PodRef[];
}

type JournalContext = Pick<CommandContext, "engine" | "files" | "layout" | "terminal">;

/** Reads the journal; says on standard error when it comes from disk because no engine runs. */
export async function readJournal(context: JournalContext): Promise<JournalSnapshot> {
  try {
    return { entries: await context.engine.entries({}), engineRuns: true, refs: [] };
  } catch (error) {
    if (!(error instanceof EngineGone)) throw error;
  }
  const entries = await readJournalFromDisk(context);
  sayNoEngine(context, entries.length === 0 ? "no journal exists" : "showing the journal of the last one");
  return { entries, engineRuns: false, refs: [] };
}

/** With more pods of one name, reading the whole journal is as fast. */
const maxLives = 16;

/**
 * Reads the entries of the selected pods and of the node itself, which on a node with many pods are a small part of the
 * journal. Without an engine the same as {@link readJournal}.
 */
export async function readPodJournal(context: JournalContext, selector: string): Promise<JournalSnapshot> {
  try {
    const refs = await context.engine.podRefs(selector);
    if (refs.length > maxLives) return { ...(await readJournal(context)), refs };
    const lives = await Promise.all(refs.map(({ uid }) => context.engine.entries({ uid })));
    const bySeq = new Map(lives.flat().map((entry) => [entry.seq, entry]));
    return { entries: [...bySeq.values()].toSorted((a, b) => a.seq - b.seq), engineRuns: true, refs };
  } catch (error) {
    if (!(error instanceof EngineGone)) throw error;
    return await readJournal(context);
  }
}

/** Says on standard error that no engine, or kubelet, runs, and how to start it. */
export function sayNoEngine({ terminal, layout, engine }: JournalContext, consequence: string): void {
  const { stateDirectory } = layout;
  terminal.warn(terminal.warnPaint.caution(`podwright: no ${engine.what} runs for ${stateDirectory}; ${consequence}`));
  terminal.warn(`  ${terminal.warnPaint.faint("→")} ${engine.startRemedy}`);
}

/**
 * The last engine's entries; none if there never was one.
 * @throws PodwrightError (environment) when they can't be read
 */
export async function readJournalFromDisk({ files, layout }: JournalContext): Promise<readonly JournalEntry[]> {
  await requireStateFormat(files, layout.stateDirectory, version);
  try {
    // Opening a missing journal would create its directory.
    if ((await files.stat(layout.journal)) === undefined) return [];
    const log = new SegmentLog(files, layout.journal, defaultJournalLimits);
    return (await log.open(defaultJournalLimits.maxEntries)).entries;
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    throw new PodwrightError(ExitCode.environment, `cannot read the journal: ${error.message}`, {
      cause: error,
      ...(error.code === "EACCES" && { remedy: "run this command as root" }),
    });
  }
}

/**
 * The pod for a name, `namespace/name` or UID.
 * @throws PodwrightError (bad input) for no pod, or pods of several namespaces
 */
export function selectPod(
  { entries, refs }: Pick<JournalSnapshot, "entries" | "refs">,
  selector: string,
): Partial<PodRef> {
  const recorded = entries.flatMap(({ pod }) => pod ?? []);
  const pods = [...new Map([...refs, ...recorded].map((pod) => [pod.uid, pod])).values()];
  const named = pods.find((pod) => pod.uid === selector);
  if (named !== undefined) return { uid: named.uid };
  const slash = selector.indexOf("/");
  const name = selector.slice(slash + 1);
  const wanted: Partial<PodRef> = slash < 0 ? { name } : { namespace: selector.slice(0, slash), name };
  const isWanted = (pod: PodRef): boolean => pod.name === name && pod.namespace === (wanted.namespace ?? pod.namespace);
  const unrecorded = refs.find((ref) => isWanted(ref) && recorded.every(({ uid }) => uid !== ref.uid));
  const [newest] = incarnations(entries, wanted);
  const found = unrecorded ?? newest?.pod;
  if (found === undefined) throw noSuchPod(selector, pods);
  const namespaces = new Set(pods.filter((pod) => pod.name === name).map((pod) => pod.namespace));
  if (slash < 0 && namespaces.size > 1) {
    const names = [...namespaces].map((namespace) => `${namespace}/${name}`).join(", ");
    throw new PodwrightError(ExitCode.badInput, `several pods have the name ${name}: ${names}`, {
      remedy: "add the namespace",
    });
  }
  // The engine knows it because it is on the node; the recorded ones of its name were before it.
  return unrecorded === undefined ? { namespace: found.namespace, name } : { uid: unrecorded.uid };
}

/** The error of a command that reads only the journal, for a pod on the node of which it has no entry any more. */
export function nothingRecorded({ layout }: Pick<CommandContext, "layout">, selector: string): PodwrightError {
  const message = `the journal has no entries of ${printable(selector)} any more: it keeps the newest`;
  return new PodwrightError(ExitCode.failed, message, {
    remedy: `'${ownCommand(layout.stateDirectory, "why", selector)}' shows the pod's state`,
  });
}
