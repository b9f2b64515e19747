import { lifeStarted } from "../../journal/entry.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/** More than the usual interval of observations and what they take. */
const longestMs = 16_000;

/** Memory and processes are observed also while nobody's storage can be measured. */
export const machineLooks: RuleMaker = ({ node, clock }, broken): Rule => {
  let sinceMs: number | undefined;
  node.resources.onLook(() => {
    const { nowMs } = clock;
    const pauseMs = nowMs - (sinceMs ?? nowMs);
    sinceMs = node.resources.storageHangs ? nowMs : undefined;
    if (pauseMs > longestMs && node.callsAreTimely) {
      broken("the machine is observed while storage hangs", `not for ${Math.round(pauseMs)} ms`);
    }
  });
  return {
    entry: ({ what }) => {
      if (what === lifeStarted) sinceMs = undefined;
    },
  };
};
