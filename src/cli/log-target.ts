import { allContainers, listedContainers } from "../api/all-containers.ts";
import { dirname } from "node:path/posix";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { type PodUid, podUid } from "../base/ids.ts";
import type { Pod } from "../api/pod.ts";
import type { ContainerView, PodView } from "../server/local-api.ts";
import { defaultContainer, defaultContainerAnnotation } from "../server/default-container.ts";
import { isSelectedBy, podLabel } from "../server/pod-selector.ts";
import { hasEnded } from "../server/pod-words.ts";
import { didYouMean } from "../base/did-you-mean.ts";
import type { CommandContext } from "./context.ts";
import { EngineGone } from "./engine-client.ts";
import { sayNoEngine } from "./journal-source.ts";
import { ownCommand } from "./own-command.ts";

/** The default podLogsDir of kubelets. */
const KUBELET_LOGS = "/var/log/pods";

/** The log that a user selected. */
export interface LogTarget {
  readonly path: string;
  readonly uid: PodUid;
  readonly container: string;
  /** The pod will not run again. */
  readonly isOfEndedPod: boolean;
}

type TargetContext = Pick<CommandContext, "engine" | "files" | "terminal" | "layout">;

/**
 * Finds a container's log: with the engine, or, if none runs or the pod is gone, on disk.
 * @throws PodwrightError (bad input) when there is no such pod, container or previous instance
 */
export async function findLog(
  context: TargetContext,
  selector: string,
  container: string | undefined,
  previous: boolean,
): Promise<LogTarget> {
  let pod: PodView;
  try {
    pod = await context.engine.pod(selector);
  } catch (error) {
    const gone = error instanceof EngineGone;
    const unknown = error instanceof PodwrightError && error.exitCode === ExitCode.badInput;
    if (!gone && !unknown) throw error;
    const found = await findOnDisk(context, selector, container, previous);
    if (found === undefined) throw gone ? noSuchLog(context, selector) : error;
    if (gone) sayNoEngine(context, `reading ${found.path}`);
    return found;
  }
  const meant = selector === pod.uid ? pod : await withLog(context, pod, container);
  return logOfView(context, meant, container, previous);
}

/**
 * The pod, or, until its container has started, the ending pod that it replaces: only that has a log under the name.
 */
async function withLog(context: TargetContext, pod: PodView, asked: string | undefined): Promise<PodView> {
  const begun = (view: PodView): boolean =>
    allContainers(view).some(({ name, startedAt }) => {
      return startedAt !== undefined && (asked === undefined || name === asked);
    });
  if (begun(pod)) return pod;
  const isRival = ({ namespace, name, uid }: PodView): boolean =>
    namespace === pod.namespace && name === pod.name && uid !== pod.uid;
  const before = (await context.engine.pods()).find((other) => isRival(other) && begun(other));
  if (before === undefined) return pod;
  const { terminal } = context;
  const which = `pod ${podLabel(pod)} (uid ${pod.uid}) has not started; showing the pod that it replaces, uid ${before.uid}`;
  terminal.warn(terminal.warnPaint.caution(which));
  return before;
}

async function logOfView(
  context: TargetContext,
  pod: PodView,
  container: string | undefined,
  previous: boolean,
): Promise<LogTarget> {
  const all = listedContainers(pod);
  const names = all.map(({ name }) => name);
  const name = chooseContainer(context, names, container, pod.defaultContainer);
  const view = all.find((candidate) => candidate.name === name);
  if (view === undefined) throw noSuchContainer(name, names);
  const path = previous ? (view.previousLogPath ?? (await earlierLog(context.files, view))) : view.logPath;
  if (path === undefined) throw noPrevious(name);
  if (path === "") throw view.state === "terminated" ? logGone(context, name) : notStarted(context, view);
  return { path, uid: pod.uid, container: name, isOfEndedPod: hasEnded(pod) };
}

/** The given container, or the pod's default, with a notice if there are others. */
function chooseContainer(
  { terminal }: TargetContext,
  names: readonly string[],
  asked: string | undefined,
  annotated: string | undefined,
): string {
  if (asked !== undefined) return asked;
  const chosen = defaultContainer(names, annotated);
  if (chosen === undefined) throw new PodwrightError(ExitCode.badInput, "the pod has no containers");
  if (chosen.note !== undefined) terminal.warn(terminal.warnPaint.faint(chosen.note));
  return chosen.name;
}

/** `<ns>_<name>_<uid>/<container>/<restart count>.log` below the root of all pods' logs. */
async function findOnDisk(
  context: TargetContext,
  selector: string,
  container: string | undefined,
  previous: boolean,
): Promise<LogTarget | undefined> {
  const { files } = context;
  const directories: { readonly path: string; readonly uid: PodUid; readonly modified: number }[] = [];
  for (const root of [context.layout.podLogs, KUBELET_LOGS]) {
    for (const entry of await files.list(root)) {
      const [namespace, name, uid] = entry.name.split("_");
      if (entry.type !== "directory" || namespace === undefined || name === undefined || uid === undefined) continue;
      if (!isSelectedBy({ namespace, name, uid }, selector)) continue;
      const path = `${root}/${entry.name}`;
      directories.push({ path, uid: podUid(uid), modified: (await files.stat(path))?.modified ?? 0 });
    }
  }
  const newest = directories.toSorted((a, b) => b.modified - a.modified)[0];
  if (newest === undefined) return undefined;
  const containers = (await files.list(newest.path)).filter((entry) => entry.type === "directory");
  const kept = await keptPod(context, newest.uid);
  const names = inOrder(
    containers.map((entry) => entry.name),
    kept,
  );
  const name = chooseContainer(context, names, container, kept?.metadata.annotations?.[defaultContainerAnnotation]);
  if (!names.includes(name)) throw noSuchContainer(name, names);
  const instances = await instancesIn(files, `${newest.path}/${name}`);
  const instance = instances[previous ? 1 : 0];
  if (instance === undefined) throw previous ? noPrevious(name) : noSuchLog(context, selector);
  return { path: `${newest.path}/${name}/${instance}.log`, uid: newest.uid, container: name, isOfEndedPod: false };
}

/** The pod's spec as kept by the engine of the state directory, or by a kubelet whose root directory contains it. */
async function keptPod({ files, layout }: TargetContext, uid: PodUid): Promise<Pod | undefined> {
  // Loaded lazily: it needs the whole schema of pods.
  const { keptSpec } = await import("../runtime/layout/kept-spec.ts");
  const roots = [layout.kubeletRoot, dirname(layout.stateDirectory)];
  const kept = await Promise.all(roots.map((rootDirectory) => keptSpec(files, { rootDirectory }, uid)));
  return kept.find((pod) => pod !== undefined);
}

/** Container names in the spec's order; unknown ones follow alphabetically. */
function inOrder(names: readonly string[], pod: Pod | undefined): string[] {
  const { containers = [], initContainers = [] } = pod?.spec ?? {};
  const order = [...containers, ...initContainers].map(({ name }) => name);
  const place = (name: string): number => (order.includes(name) ? order.indexOf(name) : order.length);
  return names.toSorted().toSorted((a, b) => place(a) - place(b));
}

/** Restart counts with a log in a container's directory, newest first. */
async function instancesIn(files: TargetContext["files"], directory: string): Promise<number[]> {
  return (await files.list(directory))
    .flatMap((entry) => /^(\d+)\.log$/.exec(entry.name)?.[1] ?? [])
    .map(Number)
    .toSorted((a, b) => b - a);
}

/**
 * The log before the current one, which may outlive its container in the runtime. While a container waits for its restart,
 * the instance that ended last is the previous one, as in kubectl.
 */
async function earlierLog(
  files: TargetContext["files"],
  { logPath, state }: ContainerView,
): Promise<string | undefined> {
  const slash = logPath.lastIndexOf("/");
  const directory = logPath.slice(0, slash);
  const present = Number.parseInt(logPath.slice(slash + 1), 10);
  const instances = await instancesIn(files, directory);
  const earlier = instances.find((instance) => instance < present || (state === "waiting" && instance === present));
  return earlier === undefined ? undefined : `${directory}/${earlier}.log`;
}

function noSuchLog({ layout }: TargetContext, selector: string): PodwrightError {
  return new PodwrightError(ExitCode.badInput, `no logs found for pod ${JSON.stringify(selector)}`, {
    remedy: `'${ownCommand(layout.stateDirectory, "ps")}' lists the pods; logs are in ${layout.podLogs}, a kubelet's in ${KUBELET_LOGS}`,
  });
}

function noSuchContainer(name: string, names: readonly string[]): PodwrightError {
  const near = didYouMean(name, names);
  const remedy = near === undefined ? `it has ${names.join(", ")}` : `did you mean ${near}?`;
  return new PodwrightError(ExitCode.badInput, `the pod has no container ${JSON.stringify(name)}`, { remedy });
}

function noPrevious(name: string): PodwrightError {
  return new PodwrightError(ExitCode.badInput, `container ${name} has no previous instance`, {
    remedy: "omit --previous for the current one",
  });
}

/** Logs go with the containers, by the node's own collections too. */
export function logGone({ layout }: Pick<TargetContext, "layout">, name: string): PodwrightError {
  const [gc, timeline] = (["gc", "timeline"] as const).map((verb) => ownCommand(layout.stateDirectory, verb));
  return new PodwrightError(ExitCode.failed, `the log of container ${name} is gone: its pod has ended`, {
    remedy: `logs of ended pods go with their containers, e.g. by '${gc}'; '${timeline} POD' shows how it ended`,
  });
}

function notStarted({ layout }: Pick<TargetContext, "layout">, { name, reason }: ContainerView): PodwrightError {
  const why = reason === "" ? "" : ` (${reason})`;
  return new PodwrightError(ExitCode.failed, `container ${name} has not started yet${why}`, {
    remedy: `'${ownCommand(layout.stateDirectory, "why")} POD' shows what it waits for`,
  });
}
