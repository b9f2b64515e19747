import { accessSync, constants, statSync } from "node:fs";
import { resolve } from "node:path";
import { count, counts, type OwnOptions } from "./options.ts";

/** The options of bench/cluster.ts, in addition to the common ones. */
export interface ClusterOptions {
  /** Numbers of pods for the measurement of rest; empty: skipped. */
  readonly rest: readonly number[];
  /** Number of dead containers for another measurement of rest; 0: skipped. */
  readonly dead: number;
  /** Absolute path of another kubelet. */
  readonly kubelet: string | undefined;
  /** Measures the other kubelet and not podwright. */
  readonly alone: boolean;
}

export const clusterOptions: OwnOptions<ClusterOptions> = {
  options: {
    rest: { type: "string" },
    dead: { type: "string" },
    kubelet: { type: "string" },
    alone: { type: "boolean" },
  },
  usage: `  --rest N[,N…]       how many pods to measure rest with; 0: none (default: 20,50,100,250)
  --dead N            rest once more, beside N dead containers; podwright only; 0: none (default: 5000)
  --kubelet PATH      another kubelet to measure after podwright, and podwright beside it
  --alone             the other kubelet only
`,
  read({ rest, dead, kubelet, alone }) {
    const isAlone = alone === true;
    if (isAlone && kubelet === undefined) throw new Error("--alone needs --kubelet PATH");
    const restPods = numbers("--rest", rest, counts) ?? [20, 50, 100, 250];
    const [asked = 0] = numbers("--dead", dead, (text) => [count(text)]) ?? [];
    if (asked > 0 && restPods.length === 0) throw new Error("--dead needs --rest: it is rest that it measures");
    if (asked > 0 && isAlone) throw new Error("--dead measures podwright only: --alone leaves it out");
    const hasDead = restPods.length > 0 && !isAlone;
    return {
      rest: restPods,
      dead: dead === undefined && hasDead ? 5000 : asked,
      kubelet: typeof kubelet === "string" ? program("--kubelet", kubelet) : undefined,
      alone: isAlone,
    };
  },
};

/** Empty for `0`; undefined for an absent option. */
function numbers(option: string, given: unknown, read: (text: string) => number[]): number[] | undefined {
  if (typeof given !== "string") return undefined;
  if (given === "0") return [];
  try {
    return read(given);
  } catch (error) {
    throw new Error(`${option}: ${(error as Error).message} (0 alone: none)`, { cause: error });
  }
}

/** The absolute path. @throws Error naming the option when there is no program */
export function program(option: string, given: string): string {
  const path = resolve(given);
  try {
    accessSync(path, path.endsWith(".js") ? constants.R_OK : constants.X_OK);
    if (statSync(path).isFile()) return path;
  } catch {
    // As when it is no file.
  }
  throw new Error(`${option}: ${path} is no program`);
}
