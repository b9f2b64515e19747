import { isStaticPod } from "../../api/pod-kind.ts";
import { isRejection } from "../../journal/vocabulary.ts";
import { mayBeKilled, mayTurnUnready } from "../life/pod-probes.ts";
import { nameOf, type WorldChange } from "../world-model.ts";
import { dataText, idOf } from "./entry-data.ts";
import type { Break, Scene } from "./rule.ts";
import { specContainers } from "./spec-containers.ts";

/**
 * Restarts podwright while all is well: no running container is disturbed, and readiness does not flip, except for what
 * really happens meanwhile (design invariant 8).
 */
export async function watchCalmRestart(scene: Scene, broken: Break, restart: () => Promise<void>): Promise<void> {
  const { world, node, pods } = scene;
  const disturbed: WorldChange[] = [];
  const ended = new Set<string>();
  const first = node.entries.length;
  const readyBefore = readyIds(scene);
  {
    using _watch = world.onChange((change) => {
      if (change.type === "stopping" || change.type === "sandboxStopped") disturbed.push(change);
      if (change.type === "exited") ended.add(change.podUid);
    });
    await restart();
  }
  for (const { type, podUid: uid, container } of disturbed) {
    const pod = pods.get(uid);
    const all = specContainers(pods, uid);
    const mayEnd = pod?.spec.activeDeadlineSeconds !== undefined || all.some(mayBeKilled);
    const mayExit = container?.behaviour.exitAfterMs !== undefined;
    const hasHooks = all.some(({ lifecycle }) => lifecycle?.postStart !== undefined);
    if (mayEnd || hasHooks || mayExit || (container === undefined && ended.has(uid))) continue;
    if (endedByItself(scene, uid) || madeRoom(scene, uid, first)) continue;
    broken("a restart disturbs nothing", `${uid}/${container === undefined ? "sandbox" : nameOf(container)} ${type}`);
  }
  for (const entry of node.entries.slice(first)) {
    if (entry.what !== "ContainerStateChanged" || entry.data?.["ready"] !== false) continue;
    const spec = pods.get(entry.pod?.uid ?? "")?.spec.containers.find(({ name }) => name === entry.container);
    const mayFlip = spec !== undefined && mayTurnUnready(spec);
    const isSame = entry.data["state"] === "running" && readyBefore.has(idOf(entry));
    if (isSame && !mayFlip) broken("readiness does not flip", `${entry.pod?.uid}/${entry.container}`);
  }
}

/**
 * For a critical pod that had been rejected: only the API server remembers that, of the pods that are its own. Others are
 * new pods then.
 */
function madeRoom({ node, pods }: Scene, uid: string, first: number): boolean {
  const [before, since] = [node.entries.slice(0, first), node.entries.slice(first)];
  const entry = since.find(({ what, pod }) => what === "Preempting" && pod?.uid === uid);
  if (entry === undefined) return false;
  const preemptor = dataText(entry, "preemptor");
  const critical = pods.get(preemptor);
  const isServers = node.cluster !== undefined && (critical === undefined || !isStaticPod(critical));
  if (isServers) return false;
  return before.some(({ what, pod }) => pod?.uid === preemptor && isRejection(what));
}

/** A pod with a container that exits by itself may end at any moment. */
function endedByItself({ pods }: Scene, uid: string): boolean {
  return specContainers(pods, uid).some(({ command }) => command?.[1] === "exit");
}

function readyIds({ node }: Scene): Set<string> {
  const statuses = node.pods().flatMap(({ status }) => status?.containerStatuses ?? []);
  return new Set(
    statuses.filter(({ ready }) => ready).map(({ containerID = "" }) => containerID.replace(/^.*:\/\//, "")),
  );
}
