import { ExitCode } from "../base/errors.ts";
import type { CommandContext } from "./context.ts";
import { EngineGone } from "./engine-client.ts";
import { formatAge, formatTable } from "./format.ts";
import { readJournalFromDisk, sayNoEngine } from "./journal-source.ts";
import { podTable } from "./pod-text.ts";
import { printable } from "../journal/text.ts";
import type { JournalEntry } from "../journal/entry.ts";
import type { PodView } from "../server/local-api.ts";

export interface PsOptions {
  readonly output?: "wide" | "json";
  readonly json?: true;
}

/** `podwright ps`: lists the engine's pods; without an engine those in the journal, with exit code 1. */
export async function psCommand(context: CommandContext, options: PsOptions): Promise<ExitCode> {
  const { terminal, clock } = context;
  const json = options.json === true || options.output === "json";
  let pods: readonly PodView[];
  try {
    pods = await context.engine.pods();
  } catch (error) {
    if (!(error instanceof EngineGone)) throw error;
    await showRecorded(context, json);
    return ExitCode.failed;
  }
  if (json) terminal.print(JSON.stringify({ engine: true, pods }, undefined, 2));
  else if (pods.length === 0) terminal.warn("no pods");
  else terminal.print(podTable(pods, options.output === "wide", clock.now(), terminal.paint).join("\n"));
  if (!json) for (const line of ignoredLines(pods)) terminal.warn(`${terminal.warnPaint.caution("!")} ${line}`);
  return ExitCode.done;
}

/** Manifests that are ignored because another one has a pod of the same name. */
function ignoredLines(pods: readonly PodView[]): string[] {
  return pods.flatMap(({ name, ignoredManifests }) =>
    ignoredManifests.map(
      (place) => `${printable(place)} is ignored: another manifest has a pod with the name ${printable(name)}`,
    ),
  );
}

async function showRecorded(context: CommandContext, json: boolean): Promise<void> {
  const entries = await readJournalFromDisk(context);
  const last = lastEntries(entries);
  const what = last.length === 0 ? "no pods are recorded" : "its pods may still run; showing the last record of each";
  sayNoEngine(context, what);
  if (json) context.terminal.print(JSON.stringify({ engine: false, pods: [], recorded: last }, undefined, 2));
  else if (last.length > 0) context.terminal.print(recordedTable(last, context.clock.now(), context).join("\n"));
}

function recordedTable(
  last: readonly JournalEntry[],
  now: number,
  { terminal }: Pick<CommandContext, "terminal">,
): string[] {
  const rows = last.map(({ pod, time, message }) => {
    return [pod?.namespace ?? "", pod?.name ?? "", `${formatAge(now - time)} ago`, printable(message)];
  });
  return formatTable([["NAMESPACE", "NAME", "WHEN", "LAST RECORD"], ...rows], terminal.paint);
}

/** The newest entry of each pod that was not removed, sorted by namespace and name. */
export function lastEntries(entries: readonly JournalEntry[]): JournalEntry[] {
  const last = new Map<string, JournalEntry>();
  const removed = new Set<string>();
  for (const entry of entries) {
    const { pod, what } = entry;
    if (pod === undefined) continue;
    // Observations of a removed pod may follow its removal.
    if (what === "PodAdded") removed.delete(pod.uid);
    if (what === "PodFinished") removed.add(pod.uid);
    const key = `${pod.namespace}/${pod.name}`;
    if (!removed.has(pod.uid)) last.set(key, entry);
    else if (last.get(key)?.pod?.uid === pod.uid) last.delete(key);
  }
  return [...last].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => entry);
}
