import type { RestartFigures } from "./cluster-restarts.ts";
import type { OneByOneFigures } from "./one-by-one.ts";
import type { Goal, Table } from "./report.ts";
import { type RestFigures, restName } from "./rest-figures.ts";
import type { Outcome, Round } from "./rounds.ts";
import { median, quantile } from "./statistics.ts";
import type { StatusFigures } from "./statuses.ts";

const startGoal = 1.3;
const restartGoal = 1.3;
const deleteGoal = 2.3;
const statusesGoalMs = 3_000;

/** Relative to another kubelet. */
const otherGoals = { start: 1 / 2, delete: 1 / 4, cpu: 1 / 3, memory: 1 };

interface BesideFloor<T> {
  readonly floor: T;
  readonly kubelet: T;
}

/** All measurements of one kubelet, and of the floor. Times are milliseconds. */
export interface ClusterFigures {
  /** `podwright`, or the name of another program. */
  readonly kubelet: string;
  readonly outcomes: readonly Outcome[];
  readonly oneByOne: BesideFloor<OneByOneFigures>;
  /** The same without pauses. */
  readonly backToBack: BesideFloor<OneByOneFigures>;
  readonly restarts: RestartFigures;
  readonly statuses: StatusFigures;
  readonly rests: readonly RestFigures[];
}

interface Pair {
  readonly name: string;
  readonly podwright: number;
  readonly other: number;
  readonly unit: "ms" | "% of a core" | "MiB";
}

/** The pod at that quantile of each round; of the rounds the median. */
function at(part: number, rounds: readonly Round[], what: keyof Round): number {
  return median(rounds.map((round) => quantile(round[what], part)));
}

const parts = [0.5, 0.9, 1];

const paces = [
  ["oneByOne", "one by one"],
  ["backToBack", "back to back"],
] as const;

/** Times since pods were created, deleted or killed: one row each, with the floor's. Pure. */
export function timesTable(figures: ClusterFigures): Table {
  const { kubelet, outcomes, restarts, statuses } = figures;
  const many = outcomes.flatMap(({ pods, floor, kubelet: rounds }) =>
    (["started", "ready", "gone"] as const).map((what) => {
      const atParts = (of: readonly Round[]): number[] => parts.map((part) => at(part, of, what));
      const ratio = (at(1, rounds, what) / at(1, floor, what)).toFixed(2);
      return [`${pods} pods, ${what}`, ...atParts(floor), ...atParts(rounds), ratio];
    }),
  );
  const row = (
    name: string,
    { floor, kubelet: own }: BesideFloor<readonly number[]>,
    part: number,
  ): (string | number)[] => {
    const ratio = `${(quantile(own, part) / quantile(floor, part)).toFixed(2)}${part === 0.5 ? " (p50)" : ""}`;
    return [name, ...[floor, own].flatMap((times) => parts.map((each) => quantile(times, each))), ratio];
  };
  const alone = paces.flatMap(([pace, name]) =>
    (["ready", "gone"] as const).map((what) => {
      const both = { floor: figures[pace].floor[what], kubelet: figures[pace].kubelet[what] };
      return row(`${both.kubelet.length} pods ${name}, ${what}`, both, 0.5);
    }),
  );
  return {
    columns: ["", "floor p50", "p90", "max", `${kubelet} p50`, "p90", "max", "ratio of max"],
    rows: [
      ...many,
      ...alone,
      row(`${restarts.kubelet.length} restarts`, restarts, 0.5),
      row(`${statuses.kubelet.length} statuses of refused pods`, statuses, 1),
    ],
  };
}

/** CPU and memory at rest, one row for each number of pods. Pure. */
export function restTable({ kubelet, rests }: ClusterFigures): Table {
  const rows = rests.map((figures) => {
    const cpu = [figures.floor, figures.kubelet].map(({ cpuPercent }) => cpuPercent.toFixed(2));
    return [restName(figures), ...cpu, figures.floor.rssMiB, figures.kubelet.rssMiB];
  });
  return { columns: ["", "floor % of a core", kubelet, "floor RSS MiB", kubelet], rows };
}

/** podwright's goals relative to the floor. Pure. */
export function floorGoals({ outcomes, oneByOne, restarts, statuses }: ClusterFigures): Goal[] {
  const times = (name: string, value: number, atMost: number): Goal => ({ name, value, atMost, unit: "×" });
  const many = outcomes.flatMap(({ pods, floor, kubelet }) => {
    const ratio = (what: keyof Round): number => at(1, kubelet, what) / at(1, floor, what);
    return [
      times(`${pods} pods, all ready`, ratio("ready"), startGoal),
      times(`${pods} pods, all gone`, ratio("gone"), deleteGoal),
    ];
  });
  const alone = (what: keyof OneByOneFigures, atMost: number): Goal => {
    const own = oneByOne.kubelet[what];
    return times(`${own.length} pods one by one, ${what}, median`, median(own) / median(oneByOne.floor[what]), atMost);
  };
  return [
    ...many,
    alone("ready", startGoal),
    alone("gone", deleteGoal),
    times("median restart", median(restarts.kubelet) / median(restarts.floor), restartGoal),
    {
      name: `${statuses.kubelet.length} statuses`,
      value: Math.max(...statuses.kubelet),
      atMost: statusesGoalMs,
      unit: "ms",
    },
  ];
}

/** The measurements that both kubelets have; rest beside dead containers is podwright's only. Pure. */
function pairs(podwright: ClusterFigures, other: ClusterFigures): Pair[] {
  const pair = (name: string, of: (figures: ClusterFigures) => number, unit: Pair["unit"] = "ms"): Pair => {
    return { name, podwright: of(podwright), other: of(other), unit };
  };
  const many = podwright.outcomes.flatMap(({ pods }, index) =>
    (["ready", "gone"] as const).flatMap((what) =>
      [0.5, 1].map((part) => {
        const name = `${pods} pods, ${part === 1 ? "the last" : "the median"} ${what}`;
        return pair(name, ({ outcomes }) => at(part, outcomes[index]?.kubelet ?? [], what));
      }),
    ),
  );
  const rests = other.rests.flatMap((figures, index) => [
    pair(`${restName(figures)}, CPU`, (one) => one.rests[index]?.kubelet.cpuPercent ?? Number.NaN, "% of a core"),
    pair(`${restName(figures)}, RSS`, (one) => one.rests[index]?.kubelet.rssMiB ?? Number.NaN, "MiB"),
  ]);
  return [
    ...many,
    ...paces.flatMap(([pace, name]) =>
      (["ready", "gone"] as const).map((what) =>
        pair(`${name}, ${what}, median`, (figures) => median(figures[pace].kubelet[what])),
      ),
    ),
    pair("restart, median", ({ restarts }) => median(restarts.kubelet)),
    pair("statuses, the last", ({ statuses }) => Math.max(...statuses.kubelet)),
    ...rests,
  ];
}

/** podwright compared with another kubelet, with its goals; for rest the worst number of pods counts. Pure. */
export function besideOther(
  podwright: ClusterFigures,
  other: ClusterFigures,
): { readonly table: Table; readonly goals: readonly Goal[] } {
  const all = pairs(podwright, other);
  const text = (value: number, unit: Pair["unit"]): string => `${value.toFixed(unit === "ms" ? 0 : 2)} ${unit}`;
  const goal = (name: string, chosen: (pair: Pair) => boolean, atMost: number): Goal[] => {
    const ratios = all.filter(chosen).map((pair) => pair.podwright / pair.other);
    return ratios.length === 0 ? [] : [{ name, value: Math.max(...ratios), atMost, unit: "× other" }];
  };
  const alone = (aim: string, what: keyof OneByOneFigures, atMost: number): Goal[] =>
    paces.flatMap(([, pace]) => {
      const figure = `${pace}, ${what}, median`;
      return goal(`${aim}: ${figure}`, ({ name }) => name === figure, atMost);
    });
  return {
    table: {
      columns: ["", podwright.kubelet, other.kubelet, "ratio"],
      rows: all.map((pair) => [
        pair.name,
        text(pair.podwright, pair.unit),
        text(pair.other, pair.unit),
        (pair.podwright / pair.other).toFixed(2),
      ]),
    },
    goals: [
      ...alone("start", "ready", otherGoals.start),
      ...alone("delete", "gone", otherGoals.delete),
      ...goal("CPU at rest, at worst", ({ unit }) => unit === "% of a core", otherGoals.cpu),
      ...goal("RSS at rest, at worst", ({ unit }) => unit === "MiB", otherGoals.memory),
    ],
  };
}
