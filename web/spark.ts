import { type Child, h } from "./dom.ts";

const width = 100;
const height = 24;

/**
 * A line of values over time, oldest first; null leaves a gap.
 * @param top the value at the upper edge; lower ones than the highest value are raised to it
 * @param label what it shows, for screen readers
 */
export function sparkline(values: readonly (number | null)[], top: number, label: string): Element {
  const known = values.filter((value) => value !== null);
  const highest = Math.max(top, ...known, Number.MIN_VALUE);
  const step = width / Math.max(1, values.length - 1);
  const points = values.map((value, index) => {
    return value === null
      ? undefined
      : { x: round(index * step), y: round(height - 1 - (value / highest) * (height - 2)) };
  });
  return h(
    "svg",
    {
      class: "spark",
      viewBox: `0 0 ${width} ${height}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": label,
    },
    ...runs(points).flatMap((run): Child[] => {
      const line = run.map(({ x, y }, index) => `${index === 0 ? "M" : "L"}${x} ${y}`).join("");
      const [first, last] = [run[0], run.at(-1)];
      if (first === undefined || last === undefined) return [];
      return [
        h("path", { class: "area", d: `${line}L${last.x} ${height}L${first.x} ${height}Z` }),
        h("path", {
          class: "line",
          d: run.length === 1 ? `${line}h0.01` : line,
          "vector-effect": "non-scaling-stroke",
        }),
      ];
    }),
  );
}

interface Point {
  readonly x: number;
  readonly y: number;
}

/** The points between gaps. */
function runs(points: readonly (Point | undefined)[]): Point[][] {
  const all: Point[][] = [];
  let run: Point[] = [];
  for (const point of points) {
    if (point !== undefined) run.push(point);
    else if (run.length > 0) {
      all.push(run);
      run = [];
    }
  }
  if (run.length > 0) all.push(run);
  return all;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

/** How full something is, as a bar. */
export function meter(part: number, whole: number): Element {
  const share = whole > 0 ? Math.min(1, Math.max(0, part / whole)) : 0;
  const level = share > 0.9 ? "high" : share > 0.75 ? "raised" : "normal";
  return h(
    "svg",
    { class: `meter ${level}`, viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" },
    h("rect", { class: "track", width: 100, height: 4 }),
    h("rect", { class: "fill", width: round(share * 100), height: 4 }),
  );
}
