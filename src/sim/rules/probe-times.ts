import { lifeStarted } from "../../journal/entry.ts";
import { probeOf, probeTimes } from "../../prober/probe-spec.ts";
import { nameOf, type WorldChange } from "../world-model.ts";
import { idOf } from "./entry-data.ts";
import { isUnseen, type Rule, type RuleMaker, recoveredMs } from "./rule.ts";
import { specContainers } from "./spec-containers.ts";

/** A command that was on its way is asked a moment later. */
const callMs = 500;
const roundingMs = 5;

/** Nothing is probed before its initial delay is over, and of a pod that ends only its readiness. */
export const probeTimeRules: RuleMaker = (scene, broken): Rule => {
  const { clock, node, pods } = scene;
  /** Simulated ms since which this life stops pods. */
  const endingMs = new Map<string, number>();
  /** How far the wall clock was off when containers started, by id: the runtime dates starts by it. */
  const offsets = new Map<string, number>();
  /** When podwright told of containers: until its worker has seen that too, the one before is asked, at their address. */
  const toldMs = new Map<string, number>();
  const wallOffsetMs = (): number => clock.wallMs - clock.nowMs;

  function probed({ podUid: uid, container, probe }: WorldChange): void {
    if (container === undefined || probe === undefined) return;
    const where = `${uid}/${nameOf(container)}`;
    const since = endingMs.get(uid);
    // Until it can be looked at, a pod is probed as before.
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
