import type { Pod } from "../../api/pod.ts";
import { nameOf, type SimContainer } from "../world-model.ts";
import { forgetPod } from "./entry-data.ts";
import { type Rule, type RuleMaker, recoveredMs } from "./rule.ts";

/** Two steps with the slowest disk; a periodic resync comes after a minute at the earliest. */
const takenUpWithinMs = 55_000;
/** After its start a container is left alone for this time. */
const youngMs = 10_000;

interface Change {
  readonly instance: SimContainer;
  readonly atMs: number;
}

/** While all of podwright's operations succeed, if slowly, a container's new image is applied soon. */
export const changes: RuleMaker = ({ clock, world, node, pods, unwanted }, broken): Rule => {
  /** Changes that have not been applied yet, by `uid/name`. */
  const waiting = new Map<string, Change>();
  /** Operations in progress on containers and sandboxes, by action. */
  const underWay = new Map<number, string>();

  function changed(before: Pod | undefined, { metadata: { uid }, spec }: Pod): void {
    const isBusy = [...underWay.values()].includes(uid);
    for (const { name, image } of spec.containers) {
      const key = `${uid}/${name}`;
      const instance = world.running(uid, name);
      const old = before?.spec.containers.find((container) => container.name === name)?.image;
      if (old === image) continue;
      waiting.delete(key);
      const isQuiet = !isBusy && instance !== undefined && instance.startedMs + youngMs < clock.nowMs;
      const isSound = node.obedientSinceMs + recoveredMs < clock.nowMs && node.knowsAllPods;
      const isDue = isQuiet && isSound && !unwanted.has(uid) && runs(old, instance);
      if (isDue) waiting.set(key, { instance, atMs: clock.nowMs });
    }
  }

  function look(): void {
    for (const [key, { instance, atMs }] of waiting) {
      const [uid = "", name] = key.split("/");
      const image = pods.get(uid)?.spec.containers.find((container) => container.name === name)?.image;
      const isOver = instance.state !== "running" || unwanted.has(uid) || runs(image, instance);
      if (isOver || node.obedientSinceMs > atMs) waiting.delete(key);
      else if (clock.nowMs > atMs + takenUpWithinMs) {
        waiting.delete(key);
        broken("changes take effect", `${key} still runs as it was after ${clock.nowMs - atMs} ms`);
      }
    }
  }

  function postpone(uid: string): void {
    for (const [key, change] of waiting) {
      if (key.startsWith(`${uid}/`)) waiting.set(key, { ...change, atMs: clock.nowMs });
    }
  }

  return {
    changed,
    entry: ({ kind, what, pod, container, seq, of = 0 }) => {
      if (waiting.size > 0) look();
      underWay.delete(of);
      if (pod === undefined) return;
      if (kind === "action" && (container !== undefined || what.includes("Sandbox"))) underWay.set(seq, pod.uid);
      const isTakenUp = kind === "action" && (what === "PreStopHook" || what === "StopContainer");
      if (isTakenUp) waiting.delete(`${pod.uid}/${container}`);
      // The worker is at something else, which takes its own time.
      if (what === "UpdateVolume") postpone(pod.uid);
      if (what === "PodTerminating") forgetPod(pod.uid, waiting);
    },
  };
};

/** The simulated runtime's ID of the image. */
function runs(image: string | undefined, instance: SimContainer): boolean {
  const tagged = image === undefined || image.includes(":") ? image : `${image}:latest`;
  return instance.config.image?.image === `sha256:${tagged}` && nameOf(instance) !== "";
}
