import { lifeStarted } from "../../journal/entry.ts";
import { type Rule, type RuleMaker, recoveredMs } from "./rule.ts";
import { dataText, idOf, whereOf } from "./entry-data.ts";

/** Two relists with events, and their consequences, all with slow calls. */
const noticedWithinMs = 40_000;

/** While nothing but events fails, the exit of a container is known and reported soon. */
export const reaction: RuleMaker = ({ clock, node }, broken): Rule => {
  /** Simulated ms at which containers ended, by id. */
  const exits = new Map<string, number>();
  const ending = new Set<string>();
  const isSoundSince = (ms: number): boolean => node.soundSinceMs + recoveredMs < ms;
  return {
    change: ({ type, container }) => {
      if (type === "exited" && container !== undefined && container.startedAt !== 0n && isSoundSince(clock.nowMs)) {
        exits.set(container.id, clock.nowMs);
      }
    },
    reborn: (uid) => void ending.delete(uid),
    entry: (entry) => {
      const uid = entry.pod?.uid ?? "";
      if (entry.what === lifeStarted) for (const known of [exits, ending]) known.clear();
      if (entry.what === "PodTerminating") ending.add(uid);
      if (entry.what !== "ContainerStateChanged" || dataText(entry, "state") === "running") return;
      const id = idOf(entry);
      const exitMs = exits.get(id);
      exits.delete(id);
      // A pod that is being stopped is reported when it has stopped.
      if (exitMs === undefined || ending.has(uid) || !isSoundSince(exitMs)) return;
      const lagMs = entry.atMs - exitMs;
      if (lagMs > noticedWithinMs) {
        broken("exits are noticed", `${whereOf(entry)} ended ${lagMs} ms before it was told`);
      }
    },
  };
};
