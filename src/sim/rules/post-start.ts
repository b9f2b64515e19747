import { lifeStarted } from "../../journal/entry.ts";
import type { SimEntry } from "../life/node.ts";
import { mayRun } from "../world-model.ts";
import { dataText, idOf, whereOf } from "./entry-data.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/** After the grace period the minimum still applies, and its rest is rounded up. */
const lateMs = 3000;

interface Failed {
  readonly where: string;
  readonly uid: string;
  readonly atMs: number;
  readonly byMs: number;
}

/**
 * A container whose postStart hook failed, as far as podwright knows, is stopped within its pod's grace period, for
 * this or any other cause.
 */
export const postStart: RuleMaker = ({ clock, world, pods }, broken): Rule => {
  /** Containers with a running hook, by the entry of its start. */
  const hooks = new Map<number, string>();
  /** Those that must be stopped, by ID. */
  const failed = new Map<string, Failed>();

  function fails(entry: SimEntry, id: string): void {
    const uid = entry.pod?.uid ?? "";
    const graceSeconds = pods.get(uid)?.spec.terminationGracePeriodSeconds ?? 30;
    const byMs = entry.atMs + graceSeconds * 1000 + lateMs;
    failed.set(id, { where: whereOf(entry), uid, atMs: entry.atMs, byMs });
  }

  function look(): void {
    for (const [id, { where, atMs, byMs }] of failed) {
      if (clock.nowMs <= byMs) continue;
      failed.delete(id);
      const container = world.containers.get(id);
      if (container === undefined || !mayRun(container)) continue;
      broken("a failed postStart hook ends its container", `${where} runs ${clock.nowMs - atMs} ms after that`);
    }
  }

  return {
    entry: (entry) => {
      const { kind, what, pod, seq, of = 0, result } = entry;
      if (what === lifeStarted) for (const known of [hooks, failed]) known.clear();
      if (failed.size > 0) look();
      // Other rules judge the end of the pod.
      if (what === "PodTerminating") {
        for (const [id, { uid }] of failed) if (uid === pod?.uid) failed.delete(id);
      }
      if (what === "StopContainer" && kind === "action") failed.delete(idOf(entry));
      if (what !== "PostStartHook") return;
      if (kind === "action") hooks.set(seq, dataText(entry, "id"));
      const id = hooks.get(of);
      hooks.delete(of);
      if (id !== undefined && result === "failed") fails(entry, id);
    },
    reborn: (uid) => {
      for (const [id, each] of failed) if (each.uid === uid) failed.delete(id);
    },
  };
};
