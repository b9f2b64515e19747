import type { Happening } from "./happening.ts";
import type { Step } from "./plan.ts";
import type { Problem } from "./problem.ts";

/** Lines before a problem: its cause is rarely further away. */
const shownLines = 100;

const marks: Readonly<Record<Happening["kind"], string>> = {
  step: "---- ",
  deed: "----   ",
  fault: "!!!! ",
  struck: "!!!! ",
  runtime: "true ",
  journal: "",
};

/**
 * The events of a life, one line each: steps of its plan (`----`) with their effects, faults (`!!!!`), changes in the
 * runtime (`true`), and the journal. For a problem: what led to it, of its pod if it names one.
 */
export function timeline(
  seed: number,
  happenings: readonly Happening[],
  problems: readonly Problem[],
  problem?: Problem,
): string {
  const uid = /\buid-\w+\b/.exec(problem?.detail ?? "")?.[0];
  const shown = happenings.filter(({ atMs, podUid, kind }) => {
    const isLater = problem !== undefined && atMs > problem.atMs;
    return !isLater && (uid === undefined || podUid === undefined || podUid === uid || kind === "step");
  });
  const last = problem === undefined ? shown : shown.slice(-shownLines);
  const broken = problem === undefined ? problems : [problem];
  return [
    `seed ${seed}`,
    ...last.map(({ atMs, kind, text }) => `${time(atMs)} ${marks[kind]}${hanging(wholeMs(text))}`),
    ...broken.map(({ rule, detail, atMs }) => `${time(atMs)} BROKEN ${rule}: ${wholeMs(detail)}`),
  ].join("\n");
}

/** Rounds drawn times, whose fractions are irrelevant. */
export function wholeMs(text: string): string {
  return text.replaceAll(/\b\d+\.\d+(?= ms\b)/g, (figure) => Number(figure).toFixed(0));
}

/** Indents continuation lines. */
function hanging(text: string): string {
  return text.replaceAll("\n", `\n${" ".repeat(19)}`);
}

/** The effects of each step, immediate and later. */
export function stepLines(plan: readonly Step[], happenings: readonly Happening[]): string[] {
  return plan.flatMap(({ index, atMs, kind }) => {
    const own = happenings.filter(({ step }) => step === index);
    const deeds = own.filter((happening) => happening.kind !== "step");
    const lines = ({ atMs: atOwnMs, text }: Happening): string[] => {
      const later = atOwnMs === atMs ? "" : ` (at ${atOwnMs.toFixed(0)} ms)`;
      return `${wholeMs(text)}${later}`.split("\n").map((line, place) => (place === 0 ? `  ${line}` : `      ${line}`));
    };
    const head = `step ${index} at ${atMs.toFixed(0)} ms: ${kind}`;
    return [own.length === 0 ? `${head} (not reached)` : head, ...deeds.flatMap(lines)];
  });
}

/** The faults before the problem: how often, and when first and last. */
export function faultLines(happenings: readonly Happening[], untilMs: number): string[] {
  const struck = happenings.filter(({ kind, atMs }) => kind === "struck" && atMs <= untilMs);
  return [...Map.groupBy(struck, ({ text }) => text)].map(([text, all]) => {
    const [first, last] = [all[0], all.at(-1)].map((happening) => happening?.atMs.toFixed(0));
    return all.length === 1 ? `${text}, at ${first} ms` : `${text}, ${all.length} times, from ${first} to ${last} ms`;
  });
}

function time(atMs: number): string {
  return atMs.toFixed(0).padStart(9);
}
