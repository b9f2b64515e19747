import { secretMark } from "../life/objects.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/** Every action names its cause, and no entry contains a secret (design invariant 12). */
export const journal: RuleMaker = (_scene, broken): Rule => ({
  entry: (entry) => {
    if (entry.kind === "action" && (entry.cause === undefined || entry.cause.message === "")) {
      broken("every action names its cause", `${entry.what} of ${entry.pod?.uid ?? "no pod"}`);
    }
    if (shows(entry.message) || shows(entry.data)) broken("secrets stay secret", `${entry.what} shows one`);
  },
});

function shows(value: unknown): boolean {
  if (typeof value === "string") return value.includes(secretMark);
  return typeof value === "object" && value !== null && Object.values(value).some(shows);
}
