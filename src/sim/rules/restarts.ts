import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import { lifeStarted } from "../../journal/entry.ts";
import { attemptOf, nameOf, type SimContainer } from "../world-model.ts";
import type { Rule, RuleMaker } from "./rule.ts";

interface Exit {
  readonly container: SimContainer;
  readonly atMs: number;
  readonly wallOffsetMs: number;
  /** Podwright told it to stop. */
  readonly stopped: boolean;
}

interface BackOff {
  readonly delayMs: number;
  readonly sinceMs: number;
}

const firstDelayMs = 10_000;
const longestDelayMs = 300_000;
const forgottenMs = 2 * longestDelayMs;
/** The runtime's times are rounded. */
const roundingMs = 5;

/** A container runs again only as its policy allows, later and later, and is counted (design invariant 2). */
export const restarts: RuleMaker = ({ clock, world, pods }, broken): Rule => {
  const lastExit = new Map<string, Exit>();
  const backOffs = new Map<string, BackOff>();
  const stopping = new WeakSet<SimContainer>();
  /** Containers whose next start needs no reason of their own: all of the pod is started over. */
  const startedOver = new Set<string>();

  function exited(container: SimContainer, uid: string): void {
    const atMs = clock.nowMs;
    const wallOffsetMs = clock.wallMs - atMs;
    const key = `${uid}/${nameOf(container)}`;
    // One that never ran has not ended.
    if (container.startedAt === 0n) return;
    lastExit.set(key, { container, atMs, wallOffsetMs, stopped: stopping.has(container) });
    const pod = pods.get(uid);
    if (pod === undefined || !restartsAll(specOf(pod, nameOf(container)), container.exitCode)) return;
    for (const { name } of allOf(pod)) startedOver.add(`${uid}/${name}`);
  }

  function started(container: SimContainer, uid: string): void {
    const name = nameOf(container);
    const key = `${uid}/${name}`;
    const last = lastExit.get(key);
    const pod = pods.get(uid);
    if (last === undefined || pod === undefined) return;
    const [before, now] = [attemptOf(last.container), attemptOf(container)];
    if (now <= before) broken("restart counts grow", `${key} went from ${before} to ${now}`);
    const spec = specOf(pod, name);
    const isNewSandbox = last.container.sandboxId !== container.sandboxId;
    const isOther = last.container.config.image?.image !== container.config.image?.image;
    const isFree = startedOver.delete(key);
    if (isFree || isOther || spec === undefined) return;
    judgePolicy(pod, spec, last, isNewSandbox, key);
    if (!isNewSandbox) judgeBackOff(key, last, container);
  }

  function judgePolicy(pod: Pod, spec: Container, last: Exit, isNewSandbox: boolean, key: string): void {
    const { exitCode, reason } = last.container;
    const isInit = pod.spec.initContainers?.includes(spec) === true;
    // In a new sandbox init containers run again.
    if (isInit && (isNewSandbox || spec.restartPolicy === "Always")) return;
    if (spec.restartPolicyRules?.some(({ exitCodes }) => exitCodes?.values?.includes(exitCode)) === true) return;
    const policy = spec.restartPolicy ?? pod.spec.restartPolicy ?? "Always";
    if (policy === "Never") broken("restart policy", `${key} restarted under Never`);
    const succeeded = exitCode === 0 && reason === "Completed" && !last.stopped;
    if (policy === "OnFailure" && succeeded) broken("restart policy", `${key} succeeded and restarted`);
  }

  function judgeBackOff(key: string, last: Exit, container: SimContainer): void {
    const known = backOffs.get(`${key} ${identityOf(container)}`);
    const live = known !== undefined && last.atMs - known.sinceMs <= forgottenMs ? known : undefined;
    const waitedMs = clock.nowMs - last.atMs;
    // An exit is dated by the wall clock, which is read when the exit is first seen.
    const clockJumped = clock.wallMs - clock.nowMs !== last.wallOffsetMs;
    if (live !== undefined && !clockJumped && waitedMs < live.delayMs - roundingMs) {
      broken("back-off", `${key} restarted ${waitedMs} ms after its exit instead of ${live.delayMs}`);
    }
    const delayMs = live === undefined ? firstDelayMs : Math.min(2 * live.delayMs, longestDelayMs);
    backOffs.set(`${key} ${identityOf(container)}`, { delayMs, sinceMs: clock.nowMs });
  }

  const forget = (uid: string): void => {
    for (const known of [lastExit, backOffs]) {
      for (const key of [...known.keys()]) if (key.startsWith(`${uid}/`)) known.delete(key);
    }
  };

  return {
    change: ({ type, podUid: uid, container }) => {
      if (container === undefined) return;
      if (type === "stopping") stopping.add(container);
      if (type === "exited") exited(container, uid);
      if (type === "started") started(container, uid);
    },
    // Back-offs are kept in memory alone.
    entry: ({ what }) => {
      if (what === lifeStarted) backOffs.clear();
    },
    reborn: forget,
    tampered: forget,
    disagreements: () => [...lastExit].flatMap(([key, { container, atMs }]) => overdue(key, container, atMs)),
  };

  /** What may run again and does not, although the longest back-off is over. */
  function overdue(key: string, container: SimContainer, atMs: number): string[] {
    if (clock.nowMs - atMs < longestDelayMs + 30_000 || !world.containers.has(container.id)) return [];
    const [uid = "", name = ""] = key.split("/");
    const pod = pods.get(uid);
    const policy = pod && (specOf(pod, name)?.restartPolicy ?? pod.spec.restartPolicy);
    const isRegular = pod?.spec.containers.some((own) => own.name === name) === true;
    if (policy !== "Always" || !isRegular || !canStart(pod, name) || lives(uid, name)) return [];
    return [`${key} ended ${Math.round((clock.nowMs - atMs) / 1000)} s ago and was not restarted`];
  }

  function lives(uid: string, name: string): boolean {
    return world.running(uid, name) !== undefined;
  }

  /** Nothing but time keeps the container from running. */
  function canStart(pod: Pod, name: string): boolean {
    const spec = specOf(pod, name);
    const hasEnded = pod.spec.activeDeadlineSeconds !== undefined;
    const hasInit = (pod.spec.initContainers ?? []).length > 0;
    const needsMore = spec?.env !== undefined || spec?.ports !== undefined || spec?.image !== "busybox";
    return !hasEnded && !hasInit && !needsMore && !(pod.spec.volumes ?? []).some((volume) => volume.name === "late");
  }
};

function allOf(pod: Pod): Container[] {
  return [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
}

function specOf(pod: Pod, name: string): Container | undefined {
  return allOf(pod).find((container) => container.name === name);
}

function restartsAll(spec: Container | undefined, exitCode: number): boolean {
  return (
    spec?.restartPolicyRules?.some(({ action, exitCodes }) => {
      return action === "RestartAllContainers" && exitCodes?.values?.includes(exitCode) === true;
    }) === true
  );
}

/** Other resources start the back-off over as another image does. */
function identityOf({ config: { image, linux } }: SimContainer): string {
  const { cpuShares, cpuQuota, memoryLimitInBytes, oomScoreAdj } = linux?.resources ?? {};
  return [image?.image, cpuShares, cpuQuota, memoryLimitInBytes, oomScoreAdj].join(" ");
}
