import { isMet } from "../../eviction/pressure.ts";
import { decodeStarts, type EvictionTerms } from "../../eviction/eviction-terms.ts";
import { withContainerFs } from "../../eviction/file-systems.ts";
import { type Signal, signals } from "../../eviction/thresholds.ts";
import { lifeStarted } from "../../journal/entry.ts";
import { dataText } from "./entry-data.ts";
import type { Rule, RuleMaker } from "./rule.ts";

const record = "/var/lib/kubelet/podwright/eviction.json";

/**
 * With --confirm-evictions no pod goes for the node that the thresholds of the last start, or of the last confirmed one,
 * would spare, before that is confirmed. What those were is what the disk says.
 */
export const changedEvictions: RuleMaker = ({ node }, broken): Rule => {
  /** What evictions were allowed for before this run. */
  let before: readonly Pick<EvictionTerms, "thresholds">[] = [];

  function begin(): void {
    const text = node.files.textOf(record);
    const { evictions } = node;
    before = evictions?.asks !== true || text === undefined ? [] : decodeStarts(text);
  }

  function evicted(uid: string, about: Signal): void {
    const { shown, fileSystems } = node.resources;
    const spares = before.some(({ thresholds }) => {
      const met = withContainerFs(thresholds, fileSystems).filter((each) => isMet(each, shown, true));
      return !met.some(({ signal }) => signal === about);
    });
    if (spares) broken("changed evictions wait for a confirmation", `${uid} goes for ${about}`);
  }

  return {
    entry: (entry) => {
      if (entry.what === lifeStarted) begin();
      if (entry.what === "EvictionsConfirmed") before = [];
      if (entry.what !== "PodEvicted") return;
      const about = signals.find((signal) => signal === dataText(entry, "signal"));
      if (about !== undefined) evicted(entry.pod?.uid ?? "", about);
    },
  };
};
