import type { LifeResult } from "./life.ts";
import type { SimEntry } from "./node.ts";
import type { Step } from "./plan.ts";
import type { Problem } from "./problem.ts";

/** Lines before a problem: what led to it is rarely further away. */
const shownLines = 60;

/**
 * What happened in a life, one line each, steps of its plan among the journal's entries. With a problem: what led to it,
 * of the pod that it names when it names one.
 */
export function timeline({ seed, entries, plan, problems }: LifeResult, problem: Problem | undefined): string {
  const uid = /\buid-\d+\b/.exec(problem?.detail ?? "")?.[0];
  const shown = entries.filter((entry) => {
    const isLater = problem !== undefined && entry.atMs > problem.atMs;
    return !isLater && (uid === undefined || entry.pod === undefined || entry.pod.uid === uid);
  });
  const lines = [
    ...plan.map((step) => ({ atMs: step.atMs, text: stepLine(step) })),
    ...shown.map((entry) => ({ atMs: entry.atMs, text: entryLine(entry) })),
  ].toSorted((a, b) => a.atMs - b.atMs);
  const last = problem === undefined ? lines : lines.filter(({ atMs }) => atMs <= problem.atMs).slice(-shownLines);
  const told = problem === undefined ? problems : [problem];
  return [
    `seed ${seed}`,
    ...last.map(({ atMs, text }) => `${atMs.toFixed(0).padStart(9)} ${text}`),
    ...told.map(({ rule, detail, atMs }) => `${atMs.toFixed(0).padStart(9)} BROKEN ${rule}: ${detail}`),
  ].join("\n");
}

function stepLine({ index, kind }: Step): string {
  return `---- step ${index}: ${kind}`;
}

function entryLine({ kind, what, message, pod, container, cause, result }: SimEntry): string {
  const about = [pod?.uid, container].filter((part) => part !== undefined).join("/");
  const why = cause === undefined ? "" : ` (because ${cause.message})`;
  return `${kind} ${what} ${about} ${message}${result === undefined ? "" : ` [${result}]`}${why}`;
}
