import type { BlamedPhase, Phase } from "./phase.ts";

/** Entry times and durations come from two clocks and are rounded: phases may seem to overlap by this much. */
const toleranceMs = 2;
/** Shorter gaps are not worth a line. */
const shortestGapMs = 10;

/**
 * Marks the phases on the critical chain, backwards from the end: each time the phase that ended last before the next
 * began. Fills holes of the chain with gaps. Phases and result are in order of their begin. Pure.
 * @param endMs offset of the end of the start-up
 */
export function criticalChain(phases: readonly Phase[], endMs: number): BlamedPhase[] {
  const chain = new Set<Phase>();
  let begin = endMs;
  let container: string | undefined;
  for (;;) {
    // The end waited for the container's readiness, not for anything before it.
    const rest = phases.filter((phase) => !chain.has(phase) && (chain.size === 0 || phase.kind !== "ready"));
    const before = predecessor(rest, begin, container);
    if (before === undefined) break;
    chain.add(before);
    begin = Math.min(begin, before.offsetMs);
    ({ container } = before);
  }
  const gaps = gapsBetween(
    phases.filter((phase) => chain.has(phase)),
    endMs,
  );
  for (const gap of gaps) chain.add(gap);
  const all = [...phases, ...gaps].toSorted((a, b) => a.offsetMs - b.offsetMs);
  const critical = all.filter((phase) => chain.has(phase));
  const longest = critical.find(({ durationMs }) => critical.every((other) => other.durationMs <= durationMs));
  return all.map((phase) => ({ ...phase, critical: chain.has(phase), longest: phase === longest }));
}

/** The phase that ended last before `begin`; among equal ones, one of the same container, else the last. */
function predecessor(phases: readonly Phase[], begin: number, container: string | undefined): Phase | undefined {
  const nearness = (phase: Phase): number => endOf(phase) + (phase.container === container ? toleranceMs : 0);
  return phases
    .filter((phase) => endOf(phase) <= begin + toleranceMs)
    .reduce<Phase | undefined>((best, phase) => {
      return best === undefined || nearness(phase) >= nearness(best) ? phase : best;
    }, undefined);
}

function gapsBetween(chain: readonly Phase[], endMs: number): Phase[] {
  const gaps: Phase[] = [];
  let reached = 0;
  let before: Phase | undefined;
  const fill = (until: number): void => {
    const durationMs = until - reached;
    if (durationMs < shortestGapMs) return;
    const label = before?.kind === "run" ? "until its end was observed" : "podwright overhead";
    const of = before?.kind === "run" && before.container !== undefined ? { container: before.container } : {};
    gaps.push({ kind: "gap", label, ...of, offsetMs: reached, durationMs, result: "done" });
  };
  for (const phase of chain) {
    fill(phase.offsetMs);
    reached = Math.max(reached, endOf(phase));
    before = phase;
  }
  fill(endMs);
  return gaps;
}

function endOf({ offsetMs, durationMs }: Phase): number {
  return offsetMs + durationMs;
}
