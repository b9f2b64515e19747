import { lifeStarted } from "../../journal/entry.ts";
import { mayTurnUnready } from "../life/pod-probes.ts";
import { dataText, idOf, whereOf } from "./entry-data.ts";
import type { Rule, RuleMaker } from "./rule.ts";
import { specContainers } from "./spec-containers.ts";

/** Within this time a container's readiness is on the disk, even after the disk was full. */
const writtenMs = 20_000;

/** A container that was ready long before podwright was killed is ready for the next run from its start. */
export const readiness: RuleMaker = ({ node, pods }, broken): Rule => {
  /** Simulated ms since when each container has been ready, by runtime ID. */
  const ready = new Map<string, number>();
  /** Those that this run has not reported yet. */
  let before: ReadonlySet<string> = new Set();
  let lastMs = 0;
  /** Since when nothing has failed, as of the last entry. */
  let soundSinceMs = Number.POSITIVE_INFINITY;
  let lifeMs = 0;

  function mayFlip(uid: string, name: string | undefined): boolean {
    const container = specContainers(pods, uid).find((each) => each.name === name);
    if (container === undefined || node.isEnding(uid) || !node.desired.has(uid)) return true;
    return mayTurnUnready(container);
  }

  return {
    entry: (entry) => {
      const { what, atMs, pod, container } = entry;
      if (what === lifeStarted) {
        const isWritten = (sinceMs: number): boolean => Math.max(sinceMs, soundSinceMs) + writtenMs < lastMs;
        before = new Set([...ready].filter(([, sinceMs]) => isWritten(sinceMs)).map(([id]) => id));
        lifeMs = atMs;
      }
      lastMs = atMs;
      ({ soundSinceMs } = node);
      if (what !== "ContainerStateChanged" || pod === undefined) return;
      const id = idOf(entry);
      const isReady = entry.data?.["ready"] === true;
      const isFlip = dataText(entry, "state") === "running" && !isReady && before.has(id);
      const isSound = soundSinceMs <= lifeMs;
      if (isFlip && isSound && !mayFlip(pod.uid, container)) {
        broken("readiness does not flip", `${whereOf(entry)} was ready before the restart`);
      }
      before = new Set([...before].filter((each) => each !== id));
      if (!isReady) ready.delete(id);
      else if (!ready.has(id)) ready.set(id, atMs);
    },
  };
};
