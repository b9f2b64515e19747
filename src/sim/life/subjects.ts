import { SimRandom } from "../random.ts";
import type { NodeManner } from "./node-config.ts";
import type { NodeStepKind } from "./steps.ts";

/** What a life is about, so that things meet that hardly ever would by chance. */
export interface Subject extends NodeManner {
  readonly name: string;
  /** Kinds of steps that come in each life of the subject, and how often compared with all others. */
  readonly weights: Readonly<Partial<Record<NodeStepKind, number>>>;
  /** What every pod has ({@link podFeatures}), or all of its containers do. */
  readonly always: ReadonlySet<string>;
  /** Nothing goes wrong but what steps bring about. */
  readonly isQuiet?: boolean;
}

const subjects: readonly Subject[] = [
  {
    name: "resizes",
    weights: { resizePod: 60, killContainer: 6, removePod: 3, killNode: 2, slowCalls: 2 },
    always: new Set(["resources", "lasting"]),
    isTight: true,
  },
  {
    name: "changes",
    weights: { changeImage: 30, failingUpdate: 20, changeObjects: 3, slowCalls: 3 },
    always: new Set(["volumes", "lasting"]),
  },
  {
    name: "changes on a slow disk",
    weights: { addPod: 30, changeAll: 80, slowDisk: 12, killContainer: 10 },
    always: new Set(["lasting", "always restarted", "volumes"]),
    isQuiet: true,
    isSeldomSynced: true,
  },
  {
    name: "orphans and returning pods",
    weights: { leaveOrphan: 8, returnPod: 30, replacePod: 6, killNodeAtStep: 3 },
    always: new Set(["lasting"]),
  },
  {
    name: "graces",
    weights: { removePodSoon: 20, removeEndingPod: 20, removeStartingPod: 20, killSandbox: 6, failingCalls: 6 },
    always: new Set(["hooks", "lasting"]),
  },
  {
    name: "a slow runtime",
    weights: { slowCalls: 30, killContainer: 10, changeLabels: 10, changeImage: 5 },
    always: new Set(["crashing", "many"]),
    isQuiet: true,
  },
  {
    name: "clocks and crashes",
    weights: { jumpClock: 30, killContainer: 10, removeContainer: 4, killNode: 2, slowCalls: 4 },
    always: new Set(["crashing"]),
  },
];

/** The subject of a seed's life; undefined: nothing comes more often than usual. */
export function drawSubject(seed: number): Subject | undefined {
  const random = new SimRandom(seed ^ 0x5b_7ec7);
  return random.chance(0.5) ? random.pickFrom(subjects) : undefined;
}
