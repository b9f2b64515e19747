import type { Happening } from "./happening.ts";
import type { Problem } from "./problem.ts";

/** Lines before a problem: what led to it is rarely further away. */
const shownLines = 100;

const marks: Readonly<Record<Happening["kind"], string>> = {
  step: "---- ",
  deed: "----   ",
  fault: "!!!! ",
  runtime: "true ",
  journal: "",
};

/**
 * What happened in a life, one line each: steps of its plan (`----`) with what they did, faults that struck (`!!!!`),
 * what came to be true in the runtime (`true`), and between them the journal. With a problem: what led to it, of the pod
 * that it names when it names one.
 */
export function timeline(
  seed: number,
  happenings: readonly Happening[],
  problems: readonly Problem[],
  problem?: Problem,
): string {
  const uid = /\buid-\d+\b/.exec(problem?.detail ?? "")?.[0];
  const shown = happenings.filter(({ atMs, podUid, kind }) => {
    const isLater = problem !== undefined && atMs > problem.atMs;
    return !isLater && (uid === undefined || podUid === undefined || podUid === uid || kind === "step");
  });
  const last = problem === undefined ? shown : shown.slice(-shownLines);
  const told = problem === undefined ? problems : [problem];
  return [
    `seed ${seed}`,
    ...last.map(({ atMs, kind, text }) => `${time(atMs)} ${marks[kind]}${wholeMs(text)}`),
    ...told.map(({ rule, detail, atMs }) => `${time(atMs)} BROKEN ${rule}: ${wholeMs(detail)}`),
  ].join("\n");
}

/** Times are fractions where they were drawn, which tells nobody anything. */
export function wholeMs(text: string): string {
  return text.replaceAll(/\b\d+\.\d+(?= ms\b)/g, (figure) => Number(figure).toFixed(0));
}

function time(atMs: number): string {
  return atMs.toFixed(0).padStart(9);
}
