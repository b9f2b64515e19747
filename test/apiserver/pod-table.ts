import { age } from "./ages.ts";
import { at, type Fields, itemsAt, numberAt, textAt } from "./objects.ts";

interface PodCells {
  /** `"1/2"` */
  readonly ready: string;
  /** One word: the phase, or the containers' reason. */
  readonly status: string;
  /** `"3 (24s ago)"` */
  readonly restarts: string;
}

function isReady(status: Fields): boolean {
  return status["ready"] === true;
}

function hasCondition(pod: Fields, type: string): boolean {
  return itemsAt(pod, "status.conditions").some((each) => each["type"] === type && each["status"] === "True");
}

function sumOfRestarts(statuses: readonly Fields[]): string {
  const count = statuses.reduce((sum, each) => sum + (numberAt(each, "restartCount") ?? 0), 0);
  const ends = statuses.map((each) => textAt(each, "lastState.terminated.finishedAt")).filter((end) => end !== "");
  const latest = ends.toSorted((a, b) => Date.parse(a) - Date.parse(b)).at(-1);
  return count === 0 || latest === undefined ? String(count) : `${count} (${age(latest)} ago)`;
}

/** How a container ended, in a word; undefined: it has not. */
function ending(status: Fields): string | undefined {
  if (at(status, "state.terminated") === undefined) return undefined;
  const signal = numberAt(status, "state.terminated.signal") ?? 0;
  const code = numberAt(status, "state.terminated.exitCode") ?? 0;
  return textAt(status, "state.terminated.reason") || (signal === 0 ? `ExitCode:${code}` : `Signal:${signal}`);
}

function hasFailed(status: Fields): boolean {
  return ending(status) !== undefined && numberAt(status, "state.terminated.exitCode") !== 0;
}

function sidecars(pod: Fields): ReadonlySet<unknown> {
  const inits = itemsAt(pod, "spec.initContainers");
  return new Set(inits.filter((each) => each["restartPolicy"] === "Always").map(({ name }) => name));
}

/** The index of the init container that the pod's start waits for; -1: none. */
function currentInit(pod: Fields): number {
  const beside = sidecars(pod);
  return itemsAt(pod, "status.initContainerStatuses").findIndex((status) => {
    if (ending(status) !== undefined) return hasFailed(status);
    return !(beside.has(status["name"]) && status["started"] === true);
  });
}

function initStatus(pod: Fields, index: number): string {
  const status = itemsAt(pod, "status.initContainerStatuses")[index] ?? {};
  const reason = ending(status) ?? textAt(status, "state.waiting.reason");
  const inOrder = reason === "" || (reason === "PodInitializing" && ending(status) === undefined);
  return inOrder ? `Init:${index}/${itemsAt(pod, "spec.initContainers").length}` : `Init:${reason}`;
}

/** The word of the first container that has one; undefined: all run normally. */
function containersStatus(pod: Fields): string | undefined {
  const statuses = itemsAt(pod, "status.containerStatuses");
  const words = statuses.map((each) => textAt(each, "state.waiting.reason") || ending(each));
  const word = words.find((each) => each !== undefined && each !== "");
  if (word !== "Completed") return word;
  const runs = statuses.some((each) => isReady(each) && at(each, "state.running") !== undefined);
  if (runs && hasCondition(pod, "Ready")) return "Running";
  const failed = statuses.find(hasFailed);
  return failed === undefined ? (runs ? "NotReady" : word) : ending(failed);
}

/** The pod's own word, before its containers'. */
function ownStatus(pod: Fields): string {
  const isGated = itemsAt(pod, "status.conditions").some(
    (each) => each["type"] === "PodScheduled" && each["reason"] === "SchedulingGated",
  );
  return isGated ? "SchedulingGated" : textAt(pod, "status.reason") || textAt(pod, "status.phase");
}

function goingStatus(pod: Fields): string | undefined {
  if (textAt(pod, "metadata.deletionTimestamp") === "") return undefined;
  if (textAt(pod, "status.reason") === "NodeLost") return "Unknown";
  return ["Succeeded", "Failed"].includes(textAt(pod, "status.phase")) ? undefined : "Terminating";
}

/** The columns of `kubectl get pods` about a pod's containers (printPod in pkg/printers/internalversion). */
export function podCells(pod: Fields): PodCells {
  const inits = itemsAt(pod, "status.initContainerStatuses");
  const beside = sidecars(pod);
  const current = currentInit(pod);
  const begins = current !== -1 && !hasCondition(pod, "Initialized");
  const containers = begins ? [] : itemsAt(pod, "status.containerStatuses");
  const reached = current === -1 ? inits : inits.slice(0, current + 1);
  const reachedBeside = reached.filter((each) => beside.has(each["name"]));
  const running = [
    ...reachedBeside.filter((each) => each["started"] === true && ending(each) === undefined),
    ...containers.filter((each) => at(each, "state.running") !== undefined),
  ];
  const word = current === -1 ? ownStatus(pod) : initStatus(pod, current);
  return {
    ready: `${running.filter(isReady).length}/${itemsAt(pod, "spec.containers").length + beside.size}`,
    status: goingStatus(pod) ?? (begins ? undefined : containersStatus(pod)) ?? word,
    restarts: sumOfRestarts(begins ? reached : [...reachedBeside, ...containers]),
  };
}
