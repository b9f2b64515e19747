import { attemptOf, nameOf, type SimContainer } from "../world-model.ts";
import type { Rule, RuleMaker } from "./rule.ts";

interface Hooked {
  readonly life: number;
  readonly endsAtMs: number;
}

/** A call that was on its way when something changed may still be carried out. */
const callMs = 500;

/**
 * What hooks and stops have to keep to (design invariant 5), within one life of the node: preStop once at most and
 * before the stop signal, no SIGKILL before the grace is over, sidecars after what they serve, and a first start that
 * waits for postStart.
 */
export const hooks: RuleMaker = ({ clock, world, node, pods, unwanted }, broken): Rule => {
  const preStops = new WeakMap<SimContainer, number>();
  const postStarts = new WeakMap<SimContainer, Hooked>();
  /** The node's life in which the container was last sent its stop signal. */
  const stopped = new WeakMap<SimContainer, number>();

  function preStop(container: SimContainer, uid: string): void {
    const what = `${uid}/${nameOf(container)}`;
    if (preStops.get(container) === node.lives) broken("preStop once", `${what} ran its preStop hook again`);
    if (stopped.get(container) === node.lives) broken("preStop before SIGTERM", `${what} ran it after that`);
    preStops.set(container, node.lives);
  }

  function stopping(container: SimContainer, uid: string, timeoutMs: number): void {
    stopped.set(container, node.lives);
    const gone = unwanted.get(uid);
    const graceSeconds = pods.get(uid)?.spec.terminationGracePeriodSeconds ?? 30;
    if (gone === undefined || gone.isEnding || !gone.told || gone.life !== node.lives) return;
    const killMs = clock.nowMs + timeoutMs;
    const graceEndMs = gone.sinceMs + graceSeconds * 1000;
    if (killMs < graceEndMs - callMs) {
      broken("the whole grace", `${uid} is killed ${graceEndMs - killMs} ms before its grace ends`);
    }
    const latestMs = Math.max(graceEndMs, clock.nowMs) + 3000;
    if (killMs > latestMs) broken("no more than the grace", `${uid} is killed ${killMs - graceEndMs} ms late`);
    if (clock.nowMs < graceEndMs) sidecarOrder(container, uid);
  }

  /** Within the grace a sidecar is stopped after every regular container of its pod. */
  function sidecarOrder(container: SimContainer, uid: string): void {
    const pod = pods.get(uid);
    const index = pod?.spec.initContainers?.findIndex(({ name }) => name === nameOf(container)) ?? -1;
    if (pod?.spec.initContainers?.[index]?.restartPolicy !== "Always") return;
    const later = pod.spec.initContainers.slice(index + 1).filter(({ restartPolicy }) => restartPolicy === "Always");
    const first = [...pod.spec.containers, ...later].find(({ name }) => {
      return world.running(uid, name)?.sandboxId === container.sandboxId;
    });
    if (first !== undefined) {
      broken("sidecars end last", `${uid}/${nameOf(container)} was stopped while ${first.name} ran`);
    }
  }

  function started(container: SimContainer, uid: string): void {
    if (attemptOf(container) > 0) return;
    const names = (pods.get(uid)?.spec.containers ?? []).map(({ name }) => name);
    const before = new Set(names.slice(0, Math.max(0, names.indexOf(nameOf(container)))));
    for (const other of world.containers.values()) {
      if (other.sandboxId !== container.sandboxId || other.state !== "running") continue;
      const hooked = postStarts.get(other);
      if (hooked?.life !== node.lives || !before.has(nameOf(other))) continue;
      // A call that is told to have failed ends the wait, though the hook goes on.
      if (attemptOf(other) === 0 && hooked.endsAtMs > clock.nowMs + callMs) {
        broken("postStart is waited for", `${uid}: started while the hook of ${nameOf(other)} ran`);
      }
    }
  }

  return {
    change: ({ type, podUid: uid, container, hook, timeoutMs = 0 }) => {
      if (container === undefined) return;
      if (type === "hook" && hook?.kind === "preStop") preStop(container, uid);
      if (type === "hook" && hook?.kind === "postStart") {
        postStarts.set(container, { life: node.lives, endsAtMs: clock.nowMs + hook.durationMs });
      }
      if (type === "stopping") stopping(container, uid, timeoutMs);
      if (type === "started") started(container, uid);
    },
  };
};
