import { hasBeginning } from "./beginning.ts";
import type { JournalEntry, PodRef } from "./entry.ts";
import { matches } from "./memory.ts";
import { manifestReturn } from "./manifest-return.ts";
import { type CauseLink, endSeq, linkOf, type Step, stepsOf } from "./steps.ts";
import { type CauseCode, factOf, isEntryName, termOf } from "./vocabulary.ts";

/** One incarnation of a pod name: a recreated pod has a new UID. Times are wall-clock milliseconds. */
export interface Incarnation {
  readonly pod: PodRef;
  readonly firstTime: number;
  readonly lastTime: number;
  readonly entryCount: number;
  /** The message of the newest entry. */
  readonly lastMessage: string;
  /** The journal, which keeps the newest entries, does not have the pod's beginning. */
  readonly truncated?: true;
}

/** The state of one container, or of the pod itself if `container` is missing. */
export interface Subject {
  readonly container?: string;
  /** The last thing that happened to it. */
  readonly last: Step;
  /** When `last` is only an observation: podwright's last own act before it, which may have caused it. */
  readonly after?: Step;
  /** The causes of `last`, or of `after` when `last` is an observation. Nearest first. */
  readonly causes: readonly CauseLink[];
  /** The wait before the next act. */
  readonly next?: Step;
}

/** The explanation of a pod's state, as JSON. */
export interface Explanation {
  readonly incarnation: Incarnation;
  /** The pod itself, then its containers in the order in which they appeared. */
  readonly subjects: readonly Subject[];
  /** Current remarks on the pod's manifest and its volumes. */
  readonly warnings: readonly Step[];
  /** Notes about podwright itself since the pod's last entry, which may explain why nothing happens. The newest few. */
  readonly notes: readonly Step[];
  /** Earlier pods of the same name, newest first. */
  readonly older: readonly Incarnation[];
}

export interface TimelineLine {
  readonly step: Step;
  /** Milliseconds since the pod's first entry. */
  readonly sinceStartMs: number;
  /** Milliseconds since the line before. */
  readonly sincePreviousMs: number;
}

/** Everything that happened to a pod, in order, as JSON. */
export interface Timeline {
  readonly incarnation: Incarnation;
  readonly lines: readonly TimelineLine[];
  /** Earlier pods of the same name, newest first. */
  readonly older: readonly Incarnation[];
}

const maxNotes = 3;

/**
 * Explains the newest pod that `pod` identifies (by UID, or namespace and name), from entries in ascending order that
 * include the node's own (`withNode`). Undefined without an entry about such a pod.
 */
export function why(entries: readonly JournalEntry[], pod: Partial<PodRef>): Explanation | undefined {
  const [incarnation, ...older] = incarnations(entries, pod);
  if (incarnation === undefined) return undefined;
  const steps = stepsOf(entries);
  const own = steps.filter((step) => step.pod?.uid === incarnation.pod.uid);
  const bySeq = new Map(entries.map((entry) => [entry.seq, entry]));
  const lastSeq = Math.max(...own.map(endSeq));
  const bySubject = Map.groupBy(
    own.filter((step) => step.kind !== "note" && !isRemark(step)),
    (step) => step.container,
  );
  const podItself = bySubject.get(undefined);
  bySubject.delete(undefined);
  // From there on only the end is waited for: containers in back-off are not restarted.
  const stopped = own.findLast(({ what }) => termOf(what).why === "stop")?.seq ?? 0;
  const returned = manifestReturn(entries.filter((entry) => entry.pod?.uid === incarnation.pod.uid));
  const explain = (of: readonly Step[]): Subject | undefined => {
    const subject = explainSubject(of, stopped);
    const first = subject?.causes.at(-1);
    const isBegin = first !== undefined && factOf(first.code)?.why === "begin";
    if (subject === undefined || returned === undefined || !isBegin) return subject;
    return { ...subject, causes: [...subject.causes, linkOf(returned, bySeq.get(returned.entry ?? 0))] };
  };
  return {
    incarnation,
    subjects: [podItself ?? [], ...bySubject.values()].map(explain).filter((subject) => subject !== undefined),
    warnings: lastingWarnings(own),
    notes: steps
      .filter((step) => step.pod === undefined && step.kind === "note" && step.seq > lastSeq && !isUpkeep(step))
      .slice(-maxNotes),
    older,
  };
}

function isRemark({ what }: Step): boolean {
  const { why: role } = termOf(what);
  return role === "remark" || role === "remark over";
}

function lastingWarnings(own: readonly Step[]): Step[] {
  const since = own.findLast(({ what }) => what === "PodAdded" || what === "PodChanged")?.seq ?? 0;
  const lasting = new Map<string, Step>();
  for (const step of own) {
    const { why: role } = termOf(step.what);
    if (role === "remark over") lasting.delete(step.message);
    else if (role === "remark" && step.seq >= since) lasting.set(step.message, step);
  }
  return [...lasting.values()];
}

/** The timeline of the newest pod that `pod` identifies; entries as for {@link why}. */
export function timeline(entries: readonly JournalEntry[], pod: Partial<PodRef>): Timeline | undefined {
  const [incarnation, ...older] = incarnations(entries, pod);
  if (incarnation === undefined) return undefined;
  const { uid } = incarnation.pod;
  const steps = stepsOf(entries);
  const isOwn = (step: Step): boolean => step.pod?.uid === uid;
  const first = steps.findIndex(isOwn);
  const last = steps.findLastIndex(isOwn);
  let previousTime = incarnation.firstTime;
  const lines = steps
    .slice(first, last + 1)
    .filter((step) => isOwn(step) || (step.pod === undefined && step.kind === "note"))
    .map((step) => {
      const line = {
        step,
        sinceStartMs: step.time - incarnation.firstTime,
        sincePreviousMs: step.time - previousTime,
      };
      previousTime = step.time;
      return line;
    });
  return { incarnation, lines, older };
}

/** True for a pod that ended before it started: the backup file that an editor writes for a moment. */
function neverStarted(own: readonly JournalEntry[]): boolean {
  const isThere = ({ kind, what }: JournalEntry): boolean =>
    kind === "observation" || (kind === "action" && what !== "RemoveLeftovers");
  return own.some(({ what }) => what === "PodFinished") && !own.some(isThere);
}

/**
 * The pods that `pod` identifies, newest first: a static pod that returns under its old UID is newer than those in
 * between.
 */
export function incarnations(entries: readonly JournalEntry[], pod: Partial<PodRef>): Incarnation[] {
  const byUid = Map.groupBy(
    entries.filter((entry) => entry.pod !== undefined && matches({ pod }, entry)),
    (entry) => entry.pod?.uid,
  );
  const real = [...byUid.values()].filter(
    (own) => own.some(({ what }) => termOf(what).why !== "shadow") && !neverStarted(own),
  );
  return (real.length > 0 ? real : [...byUid.values()])
    .flatMap((own) => {
      const first = own[0];
      const last = own.at(-1);
      if (first?.pod === undefined || last === undefined) return [];
      const lastTime = Math.max(last.time, last.repeated?.lastTime ?? 0);
      const incarnation: Incarnation = {
        pod: first.pod,
        firstTime: first.time,
        lastTime,
        entryCount: own.length,
        lastMessage: last.message,
        ...(!hasBeginning(own) && { truncated: true }),
      };
      const came = own.findLast(({ what }) => what === "PodAdded") ?? first;
      return [{ incarnation, cameSeq: came.seq }];
    })
    .toSorted((a, b) => b.cameSeq - a.cameSeq)
    .map(({ incarnation }) => incarnation);
}

/**
 * The explanation of a pod that is on the node, but of which the journal has no entry any more.
 * @param createdAt wall-clock milliseconds
 */
export function unrecorded(pod: PodRef, createdAt: number): Explanation {
  const { namespace, name, uid } = pod;
  const incarnation: Incarnation = {
    pod: { namespace, name, uid },
    firstTime: createdAt,
    lastTime: createdAt,
    entryCount: 0,
    lastMessage: "",
    truncated: true,
  };
  return { incarnation, subjects: [], warnings: [], notes: [], older: [] };
}

/** @param stopped sequence number of the step that began the pod's end; 0: none */
function explainSubject(steps: readonly Step[], stopped: number): Subject | undefined {
  const inOrder = steps.toSorted((a, b) => endSeq(a) - endSeq(b));
  const last = inOrder.findLast((step) => !isWait(step) && !isTidying(step)) ?? inOrder.at(-1);
  if (last === undefined) return undefined;
  const after =
    last.kind === "observation" && last.causes.every(({ code }) => isSeen(code))
      ? steps.findLast((step) => step.kind === "action" && step.seq < last.seq && !isTidying(step))
      : undefined;
  return {
    ...(last.container !== undefined && { container: last.container }),
    last,
    ...(after !== undefined && { after }),
    causes: (after ?? last).causes,
    ...nextOf(inOrder, stopped),
  };
}

/** The last wait, unless a later act shows that it is over. */
function nextOf(inOrder: readonly Step[], stopped: number): { next?: Step } {
  const wait = inOrder.findLast((step) => isWait(step) && step.seq >= stopped);
  const lastAction = inOrder.findLast((step) => step.kind === "action" && !isTidying(step));
  if (wait === undefined || (lastAction !== undefined && lastAction.seq > wait.seq)) return {};
  return { next: wait };
}

/** True for an action that changes nothing that a pod or container waits for. */
export function isUpkeep({ what, cause }: Pick<JournalEntry, "what" | "cause">): boolean {
  return termOf(what).why === "upkeep" || (cause !== undefined && isTidyingFor(cause.code));
}

/** Housekeeping and its observations, which do not explain a pod's state. */
function isTidying(step: Step): boolean {
  const { why: role } = termOf(step.what);
  return (
    (role === "upkeep" && step.ending?.result === "done") ||
    role === "tidied" ||
    step.causes.some(({ code }) => isTidyingFor(code))
  );
}

function isTidyingFor(code: CauseCode): boolean {
  return factOf(code)?.why === "tidying";
}

/** A cause that is only an observation: the preceding action explains it. */
function isSeen(code: CauseCode): boolean {
  return factOf(code)?.why === "seen" || (isEntryName(code) && termOf(code).seen === true);
}

function isWait(step: Step): boolean {
  return step.kind === "decision" && step.until !== undefined;
}
