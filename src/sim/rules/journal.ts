import { secretMark } from "../life/objects.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/** Every action names its cause, and nothing that is written shows a secret (design invariant 12). */
export const journal: RuleMaker = (_scene, broken): Rule => ({
  entry: (entry) => {
    if (entry.kind === "action" && (entry.cause === undefined || entry.cause.message === "")) {
      broken("every action names its cause", `${entry.what} of ${entry.pod?.uid ?? "no pod"}`);
    }
    if (entry.data !== undefined && JSON.stringify(entry).includes(secretMark)) {
      broken("secrets stay secret", `${entry.what} shows one`);
    }
  },
});
