import { nameOf, type SimContainer } from "../world-model.ts";
import { idOf } from "./entry-data.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/** The longest back-off, after which everything is stopped without a grace and removed. */
const doneWithinMs = 360_000;

interface Asked {
  readonly by: SimContainer;
  /** Simulated ms from which its back-off counts. */
  readonly sinceMs: number;
  /** By the wall clock, by which the runtime dates its end. */
  readonly exitWallMs: number;
  /** Containers that were there then. */
  readonly before: ReadonlySet<string>;
}

/** When a container asks that its whole pod start over, nothing of the pod's earlier containers is left in the end. */
export const startOver: RuleMaker = ({ clock, world, node, pods }, broken): Rule => {
  const asked = new Map<string, Asked>();
  const idsOf = (uid: string): string[] =>
    [...world.containers.values()]
      .filter(({ config }) => config.labels["io.kubernetes.pod.uid"] === uid)
      .map(({ id }) => id);
  const asks = (uid: string, container: SimContainer): boolean => {
    const { exitCode, startedAt } = container;
    const spec = pods.get(uid)?.spec.containers.find(({ name }) => name === nameOf(container));
    return (
      startedAt !== 0n &&
      spec?.restartPolicyRules?.some(({ action, exitCodes }) => {
        return action === "RestartAllContainers" && exitCodes?.values?.includes(exitCode) === true;
      }) === true
    );
  };
  /** A life that first sees an end after the wall clock went back takes it for younger than it is. */
  function sees(uid: string, id: string): void {
    const known = asked.get(uid);
    if (known?.by.id !== id) return;
    const sinceMs = clock.nowMs - Math.max(0, clock.wallMs - known.exitWallMs);
    asked.set(uid, { ...known, sinceMs: Math.max(known.sinceMs, sinceMs) });
  }

  /** A crash half-way must not forget that it was asked for. */
  function removes(uid: string, id: string): void {
    const { by, before } = asked.get(uid) ?? {};
    if (by?.id !== id || before === undefined) return;
    const names = new Set(pods.get(uid)?.spec.containers.map(({ name }) => name));
    const left = [...world.containers.values()].find((other) => {
      return other.id !== id && before.has(other.id) && names.has(nameOf(other)) && !asks(uid, other);
    });
    if (left !== undefined) broken("the one that asks goes last", `${uid}: ${nameOf(by)} goes before ${nameOf(left)}`);
  }

  return {
    reborn: (uid) => void asked.delete(uid),
    tampered: (uid) => void asked.delete(uid),
    change: ({ type, podUid: uid, sandbox, container }) => {
      // In a new sandbox the pod begins anew by other rules.
      if (type === "sandboxStopped" && sandbox !== undefined) asked.delete(uid);
      if (type !== "exited" || container === undefined || !asks(uid, container)) return;
      const before = new Set(idsOf(uid));
      asked.set(uid, { by: container, sinceMs: clock.nowMs, exitWallMs: clock.wallMs, before });
    },
    entry: (entry) => {
      const uid = entry.pod?.uid ?? "";
      if (entry.what === "PodTerminating") asked.delete(uid);
      if (entry.what === "ContainerDied") sees(uid, idOf(entry));
      if (entry.kind === "action" && entry.what === "RemoveContainer") removes(uid, idOf(entry));
    },
    atRest: () => {
      for (const [uid, { by, sinceMs, before }] of asked) {
        if (sinceMs + doneWithinMs > clock.nowMs) continue;
        const names = new Set(pods.get(uid)?.spec.containers.map(({ name }) => name));
        const left = idsOf(uid).find((id) => before.has(id) && names.has(nameOf(world.containers.get(id) ?? by)));
        if (left !== undefined && node.desired.has(uid)) {
          broken("pods start over as a whole", `${uid}: ${nameOf(by)} asked for it, and ${left} is still there`);
        }
      }
    },
  };
};
