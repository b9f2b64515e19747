import { basename, join, resolve } from "node:path/posix";
import { readBootPods } from "../agent/boot-memory.ts";
import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import type { PodRef } from "../journal/entry.ts";
import { manifestNames } from "../sources/load.ts";
import { objectKey } from "../sources/run-objects.ts";
import type { PodView } from "../server/local-api.ts";
import { endEngine, ensureEngine, findEngine } from "./engine-process.ts";
import { EngineSession } from "./engine-session.ts";
import { printWarning } from "./error-output.ts";
import { plural } from "./format.ts";
import { Interrupts } from "./interrupts.ts";
import { KnowledgeLimit, listPods } from "./listing.ts";
import type { MachineContext } from "./machine-context.ts";
import { type LoadedInput, loadInput, pathType } from "./manifest-input.ts";
import { engineService, type ServicePlaces } from "./service-units.ts";
import { hasUnit, removeUnit } from "./services.ts";
import { requestStop, waitUntilGone } from "./stopping.ts";

const pollMs = 200;

/**
 * `podwright disable`: removes the manifests with these names, or all, and stops their pods. Removes the service with the last
 * manifest. After an interruption the next call completes it.
 */
export async function disableCommand(
  context: MachineContext,
  operands: readonly string[],
  places: ServicePlaces,
): Promise<ExitCode> {
  const { terminal, files } = context;
  using interrupts = new Interrupts(process, terminal.closed);
  const signal = interrupts.first;
  const present = await manifestNames(files, places.manifests);
  const asked = await Promise.all(operands.map((operand) => namesOf(context, operand, present)));
  const names = operands.length === 0 ? present : [...new Set(asked.flat())];
  const unknown = names.find((name) => !present.includes(name));
  const isUnfinished = names.length === 0 && (await hasUnit(files, places, engineService));
  if (unknown !== undefined || (names.length === 0 && !isUnfinished)) {
    throw new PodwrightError(
      ExitCode.badInput,
      unknown === undefined ? "nothing is enabled" : `${unknown} is not enabled`,
      {
        remedy: present.length === 0 ? `${places.manifests} has no manifests` : `enabled: ${present.join(", ")}`,
      },
    );
  }
  const pathOf = (name: string): string => join(places.manifests, name);
  const removed = await loadInput(context, names.map(pathOf), signal);
  const keptNames = present.filter((name) => !names.includes(name));
  const kept = await loadInput(context, keptNames.map(pathOf), signal);
  for (const error of removed.errors) printWarning(terminal, error);
  const ending = endingPods(removed, kept, await rememberedPods(context));
  // Before anything is changed: without an engine the pods would keep running.
  const found = await engineForStop(context, signal);
  try {
    for (const name of names) await files.remove(pathOf(name));
  } catch (error) {
    if (found === "started") await endEngine(context);
    throw error;
  }
  if (found !== "none") await stopPods(context, ending, keptNames.length === 0, signal);
  if (found === "started") await endEngine(context);
  const isLast = (await manifestNames(files, places.manifests)).length === 0;
  const rest = isLast ? `; no manifest is left${await removeService(context, places)}` : "";
  terminal.print(`disabled: ${plural(names.length, "manifest")}${rest}`);
  return ExitCode.done;
}

/** Removes the service, if podwright wrote it. @returns what became of it, as the end of a sentence */
async function removeService(context: MachineContext, places: ServicePlaces): Promise<string> {
  if (await removeUnit(context, places, engineService)) return ", and the service is removed";
  const unit = join(places.units, engineService);
  return (await context.files.stat(unit)) === undefined ? "" : `; ${unit} stays: podwright did not write it`;
}

/** The names of an operand's manifests: its own, or, as `enable` takes a directory, those of the directory's files. */
async function namesOf(
  context: MachineContext,
  operand: string,
  present: readonly string[],
): Promise<readonly string[]> {
  const name = basename(operand);
  const path = resolve(process.cwd(), operand);
  if (present.includes(name) || (await pathType(context, path)) !== "directory") return [name];
  const names = (await manifestNames(context.files, path)).filter((each) => present.includes(each));
  if (names.length > 0) return names;
  throw new PodwrightError(ExitCode.badInput, `no manifest in ${operand} is enabled`, {
    remedy: present.length === 0 ? "nothing is enabled" : `enabled: ${present.join(", ")}`,
  });
}

/** Pods that the engine started from manifests, including those of manifests that are invalid by now. */
async function rememberedPods({ terminal, files, layout }: MachineContext): Promise<readonly string[]> {
  try {
    return await readBootPods(files, layout.bootPods);
  } catch (error) {
    printWarning(terminal, new Error(`${layout.bootPods}: ${errorMessage(error)}`, { cause: error }));
    return [];
  }
}

/**
 * The pods to be stopped when manifests are removed, as `namespace/name`. Pure.
 * @param remembered pods that the engine started from any manifest
 */
export function endingPods(
  removed: Pick<LoadedInput, "request">,
  kept: Pick<LoadedInput, "request" | "errors">,
  remembered: readonly string[],
): ReadonlySet<string> {
  const keysOf = ({ request }: Pick<LoadedInput, "request">): string[] => {
    return request.pods.map(({ metadata }) => objectKey(metadata));
  };
  // Any remembered pod may belong to a remaining manifest that is invalid by now.
  const ended = kept.errors.length > 0 ? keysOf(removed) : [...keysOf(removed), ...remembered];
  return new Set(ended).difference(new Set(keysOf(kept)));
}

/** Starts an engine if none answers and an earlier one left pods. */
async function engineForStop(context: MachineContext, signal: AbortSignal): Promise<"running" | "started" | "none"> {
  const { files, layout } = context;
  if ((await findEngine(context)) !== undefined) return "running";
  const left = [...(await files.list(layout.manifests)), ...(await files.list(`${layout.kubeletRoot}/pods`))];
  if (left.length === 0) return "none";
  await ensureEngine(context, {}, signal);
  return "started";
}

/** @param isLast whether the service is removed afterwards: then nothing would complete stops that are in progress */
async function stopPods(
  context: MachineContext,
  ending: ReadonlySet<string>,
  isLast: boolean,
  signal: AbortSignal,
): Promise<void> {
  const session = new EngineSession(context, {}, signal);
  const views = await allPods(context, session, signal);
  const pods: readonly PodRef[] = views.filter((view) => ending.has(objectKey(view)));
  const stopping: readonly PodRef[] = isLast ? views.filter(({ state }) => state !== "syncing") : [];
  await requestStop(context, session, pods, { graceSeconds: undefined, signal });
  await waitUntilGone(context, session, [...new Set([...pods, ...stopping])], { quiet: false, signal });
}

/** All pods; waits until a new engine has listed those of earlier runs. */
async function allPods(
  { clock, layout }: MachineContext,
  session: EngineSession,
  signal: AbortSignal,
): Promise<readonly PodView[]> {
  const limit = new KnowledgeLimit(clock, layout.stateDirectory);
  for (;;) {
    const { views, knowsAllPods, unlisted } = await session.call(listPods);
    if (knowsAllPods || unlisted?.length === 0) return views;
    limit.check(false);
    await clock.sleep("the engine to know all pods", pollMs, signal);
  }
}
