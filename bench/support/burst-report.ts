import type { Goal, Table } from "./report.ts";
import { median } from "./statistics.ts";

/** One burst of pods. */
export interface Burst {
  /** Of the agent itself, and of the programs that it started. */
  readonly cpuMs: number;
  readonly spawnedCpuMs: number;
  /** Resident memory before it and at its peak. */
  readonly restMiB: number;
  readonly peakMiB: number;
  readonly readyMs: number;
  readonly goneMs: number;
}

/** All bursts of one agent, by the number of pods. */
export interface AgentBursts {
  readonly name: string;
  readonly bursts: ReadonlyMap<number, readonly Burst[]>;
}

/** Relative to another kubelet. */
const goals = { cpu: 1, peak: 1 };

const columns = [
  "",
  "CPU ms",
  "a pod",
  "programs ms",
  "RSS before",
  "peak MiB",
  "ready ms",
  "gone ms",
  "CPU ratio",
  "peak ratio",
];

/** A row for each agent and number of pods: medians, and the medians of the rounds' ratios to the first agent's. Pure. */
export function burstTable(agents: readonly AgentBursts[]): Table {
  const rows = [...(agents[0]?.bursts.keys() ?? [])].flatMap((pods) =>
    agents.map((agent, index) => {
      const of = (what: keyof Burst): number => at(agent, pods, what);
      const first = agents[0];
      const ratio = (what: keyof Burst): string => {
        return index === 0 || first === undefined ? "" : ratioOf(first, agent, pods, what).toFixed(2);
      };
      return [
        `${pods} pods, ${agent.name}`,
        of("cpuMs"),
        (of("cpuMs") / pods).toFixed(1),
        of("spawnedCpuMs"),
        of("restMiB"),
        of("peakMiB"),
        of("readyMs"),
        of("goneMs"),
        ratio("cpuMs"),
        ratio("peakMiB"),
      ];
    }),
  );
  return { columns, rows };
}

/** The first agent's goals relative to another kubelet. Pure. */
export function burstGoals(first: AgentBursts, other: AgentBursts): Goal[] {
  const goal = (name: string, pods: number, what: keyof Burst, atMost: number): Goal => {
    return {
      name: `${pods} pods, ${name}`,
      value: ratioOf(first, other, pods, what),
      atMost,
      unit: "× other",
    };
  };
  return [...first.bursts.keys()].flatMap((pods) => [
    goal("CPU time", pods, "cpuMs", goals.cpu),
    goal("peak RSS", pods, "peakMiB", goals.peak),
  ]);
}

function at({ bursts }: AgentBursts, pods: number, what: keyof Burst): number {
  return median((bursts.get(pods) ?? []).map((burst) => burst[what]));
}

/** Round by round: from one to the next, the machine's speed differs by more than the agents do. */
function ratioOf(first: AgentBursts, other: AgentBursts, pods: number, what: keyof Burst): number {
  const others = other.bursts.get(pods) ?? [];
  const ratios = (first.bursts.get(pods) ?? []).map(
    (burst, round) => burst[what] / (others[round]?.[what] ?? Number.NaN),
  );
  return median(ratios);
}
