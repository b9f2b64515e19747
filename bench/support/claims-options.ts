import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { OwnOptions } from "./options.ts";

export interface ClaimsOptions {
  /** How often a node at rest is measured; 0: never. */
  readonly restRounds: number;
  /** An earlier bundle, for pods with a ConfigMap; undefined: none. */
  readonly before: string | undefined;
}

export const claimsOptions: OwnOptions<ClaimsOptions> = {
  options: { "rest-rounds": { type: "string", default: "4" }, before: { type: "string" } },
  usage: `  --rest-rounds N     how often a node at rest is measured (default: 4; 0: never)
  --before PROGRAM    an earlier bundle to compare pods with a ConfigMap with
`,
  read: ({ "rest-rounds": rounds, before }) => {
    const restRounds = Number(rounds);
    if (!Number.isInteger(restRounds) || restRounds < 0) throw new Error(`"${String(rounds)}" is no number of rounds`);
    const path = typeof before === "string" ? resolve(before) : undefined;
    if (path !== undefined && !existsSync(path)) throw new Error(`there is no ${path}`);
    return { restRounds, before: path };
  },
};
