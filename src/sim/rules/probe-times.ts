import { lifeStarted } from "../../journal/entry.ts";
import { probeOf, probeTimes } from "../../prober/probe-spec.ts";
import { nameOf, type WorldChange } from "../world-model.ts";
import { idOf } from "./entry-data.ts";
import { isUnseen, type Rule, type RuleMaker, recoveredMs } from "./rule.ts";
import { specContainers } from "./spec-containers.ts";

/** A command in progress arrives a moment later. */
const callMs = 500;
const roundingMs = 5;

/** Nothing is probed before its initial delay, and in an ending pod only readiness is probed. */
export const probeTimeRules: RuleMaker = (scene, broken): Rule => {
  const { clock, node, pods } = scene;
  /** Simulated ms since when this run stops pods. */
  const endingMs = new Map<string, number>();
  /** The wall clock offset when containers started, by ID: the runtime dates starts by it. */
  const offsets = new Map<string, number>();
  /**
   * When podwright learned of containers: until its worker has seen that, the previous one is probed, at their common
   * address.
   */
  const toldMs = new Map<string, number>();
  const wallOffsetMs = (): number => clock.wallMs - clock.nowMs;

  function probed({ podUid: uid, container, probe }: WorldChange): void {
    if (container === undefined || probe === undefined) return;
    const where = `${uid}/${nameOf(container)}`;
    const since = endingMs.get(uid);
    // Until it can be inspected, a pod is probed as before.
    const isLate =
      since !== undefined && since > node.soundSinceMs + recoveredMs && clock.nowMs > since + callMs * node.slowness;
    if (probe.type !== "readiness" && isLate) {
      broken("only readiness at the end", `${where} was probed for ${probe.type} while its pod ended`);
    }
    const own = specContainers(pods, uid).find(({ name }) => name === nameOf(container));
    const spec = own && probeOf(own, probe.type);
    const knownMs = (toldMs.get(container.id) ?? Number.POSITIVE_INFINITY) + callMs * node.slowness;
    if (spec === undefined || clock.nowMs <= knownMs || offsets.get(container.id) !== wallOffsetMs()) return;
    const earlyMs = container.startedMs + probeTimes(spec).initialDelayMs - clock.nowMs;
    if (earlyMs <= roundingMs || isUnseen(scene, uid)) return;
    broken("initial delay", `${where} was probed for ${probe.type} ${earlyMs} ms early`);
  }

  return {
    reborn: (uid) => void endingMs.delete(uid),
    change: (change) => {
      const { type, container } = change;
      if (type === "started" && container !== undefined) offsets.set(container.id, wallOffsetMs());
      if (type === "probed") probed(change);
    },
    entry: (entry) => {
      const { what, pod, atMs } = entry;
      if (what === "ContainerStarted") toldMs.set(idOf(entry), atMs);
      if (what === lifeStarted) endingMs.clear();
      const uid = pod?.uid ?? "";
      if (what === "PodTerminating" && !endingMs.has(uid)) endingMs.set(uid, atMs);
      if (what === "PodFinished") endingMs.delete(uid);
    },
  };
};
