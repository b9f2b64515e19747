import { containersOf } from "../../api/all-containers.ts";
import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import { lifeStarted } from "../../journal/entry.ts";
import { isRejection, type EntryName } from "../../journal/vocabulary.ts";
import { imageVolumesOf } from "../../runtime/config/volume-images.ts";
import type { SimEntry } from "../life/node.ts";
import { attemptOf, nameOf, type SimContainer, type WorldChange } from "../world-model.ts";
import { forgetPod, idOf, whereOf } from "./entry-data.ts";
import { type Break, type Rule, type Scene, recoveredMs } from "./rule.ts";
import { restartsAll } from "./start-over.ts";

/** The run and the wall clock offset of an event. */
interface Dated {
  readonly life: number;
  readonly wallOffsetMs: number;
}

interface Exit extends Dated {
  readonly container: SimContainer;
  readonly atMs: number;
  /** podwright told it to stop. */
  readonly stopped: boolean;
  /** The run that saw it before the wall clock jumped. */
  seenInLife?: number;
  /** A start was attempted since; failed ones count too. */
  tried?: boolean;
  /** Simulated ms of the last decision to start it: its image may take much longer. */
  triedMs?: number;
  /** When that was: the recorded restart is dated then. */
  triedIn?: Dated;
  /** The reported end of its back-off in simulated ms, and the first decision to restart it after that. */
  untilMs?: number;
  resumedMs?: number;
}

const tries: ReadonlySet<EntryName> = new Set(["PullImage", "ImagePresent"]);
/** It was attempted, and waits for something else now. */
const hindrances: ReadonlySet<EntryName> = new Set(["ImagePullBackOff", "ErrImageNeverPull", "StartRetry"]);
const stops: ReadonlySet<EntryName> = new Set(["PreStopHook", "StopContainer"]);
const waits: ReadonlySet<EntryName> = new Set(["BackOff", "StartRetry"]);

interface BackOff extends Dated {
  readonly delayMs: number;
  readonly sinceMs: number;
}

const firstDelayMs = 10_000;
const longestDelayMs = 300_000;
const forgottenMs = 2 * longestDelayMs;
/** A failed restart of all containers is retried within this time, whatever waited how long before. */
const retryMs = 15_000;
/** The runtime's times are rounded. */
const roundingMs = 5;
/** Within this time the state of a container is on the disk. */
const writtenMs = 10_000;
/** From the end of a back-off to the start. */
const startMs = 30_000;

/** A container restarts only as its policy allows, with growing delays, and is counted (design invariant 2). */
export class Restarts implements Rule {
  readonly #scene: Scene;
  readonly #broken: Break;
  /** By `uid/name`. */
  readonly #lastExit = new Map<string, Exit>();
  /** By `uid/name image`. */
  readonly #backOffs = new Map<string, BackOff>();
  readonly #stopping = new WeakSet<SimContainer>();
  /** When the start of each container was decided. */
  readonly #starts = new WeakMap<SimContainer, Dated>();
  /** Pods that a container has restarted as a whole: from then on none needs a reason of its own. */
  readonly #startedOver = new Set<string>();
  /** Pods that were rejected, evicted, or preempted. */
  readonly #over = new Set<string>();
  /** Containers whose resources were ever to change, by `uid/name`: that resets their back-offs. */
  readonly #resized = new Set<string>();

  constructor(scene: Scene, broken: Break) {
    this.#scene = scene;
    this.#broken = broken;
  }

  change({ type, podUid: uid, container }: WorldChange): void {
    if (container === undefined) return;
    if (type === "stopping") this.#stopping.add(container);
    if (type === "exited") this.#exited(container, uid);
    if (type === "started") this.#started(container, uid);
    if (type === "removed") this.#removed(container, uid);
  }

  entry(entry: SimEntry): void {
    const { kind, what } = entry;
    if (what === lifeStarted) this.#keepRemembered();
    if (what === "BackOff") this.#waits(entry);
    if (what === "StartRetry") this.#retries(entry);
    // The user ends its back-offs.
    if (what === "RetryRequested") this.#forget(entry.pod?.uid ?? "");
    if (what === "ComputePodActions") this.#decided(entry);
    if (isRejection(what) || ["Preempting", "PodEvicted", "Terminated"].includes(what)) this.#end(entry.pod?.uid ?? "");
    const last = this.#lastExit.get(whereOf(entry));
    // From the first step of stopping it, its exit is no success: it may precede the end of its hook.
    const ended = this.#scene.world.containers.get(idOf(entry));
    if (kind === "action" && stops.has(what) && ended !== undefined) this.#stopping.add(ended);
    const isTry = kind === "action" || (kind === "decision" && !waits.has(what));
    if (last === undefined) return;
    if (isTry && entry.container !== undefined) last.tried = true;
    const isStart = isTry && tries.has(what);
    if (isStart) [last.triedMs, last.triedIn] = [entry.atMs, this.#now()];
    if (last.untilMs !== undefined && (isStart || hindrances.has(what))) last.resumedMs ??= entry.atMs;
  }

  changed(before: Pod | undefined, after: Pod): void {
    if (before === undefined) return;
    for (const { name } of containersOf(after.spec)) {
      const key = `${after.metadata.uid}/${name}`;
      if (resourcesOf(before, name) !== resourcesOf(after, name)) this.#resized.add(key);
      // Each image has its own back-off.
      const last = this.#lastExit.get(key);
      if (last === undefined || specOf(before, name)?.image === specOf(after, name)?.image) continue;
      delete last.untilMs;
      delete last.resumedMs;
    }
  }

  reborn(uid: string): void {
    this.#over.delete(uid);
    this.#forget(uid);
  }

  /** A rejected or preempted pod is over. */
  #end(uid: string): void {
    this.#over.add(uid);
    this.#forget(uid);
  }

  #forget(uid: string): void {
    forgetPod(uid, this.#lastExit, this.#backOffs);
  }

  tampered(uid: string): void {
    this.#forget(uid);
  }

  /** Containers that may restart and do not, although the longest back-off is over. */
  disagreements(): string[] {
    const { clock, world, node } = this.#scene;
    const nowOffsetMs = clock.wallMs - clock.nowMs;
    return [...this.#lastExit].flatMap(([key, { container, atMs, life, wallOffsetMs }]) => {
      const [uid = "", name = ""] = key.split("/");
      const pod = node.desired.get(uid);
      const isRecent = clock.nowMs - atMs < longestDelayMs + startMs;
      // A later run dates the exit by the wall clock.
      const isDated = life === node.lives || wallOffsetMs === nowOffsetMs;
      if (isRecent || !isDated || pod === undefined || this.#over.has(uid)) return [];
      if (!world.containers.has(container.id)) return [];
      if (world.running(uid, name) !== undefined || !mayAlwaysRestart(pod, name)) return [];
      return [`${key} ended ${Math.round((clock.nowMs - atMs) / 1000)} s ago and was not restarted`];
    });
  }

  /** A new run knows those that were recorded: given time, a disk, and an unchanged clock. */
  #keepRemembered(): void {
    const { clock, node } = this.#scene;
    for (const [identity, { sinceMs, wallOffsetMs }] of this.#backOffs) {
      const isWritten = sinceMs + writtenMs < clock.nowMs && node.diskFaultMs < sinceMs - writtenMs;
      if (!isWritten || wallOffsetMs !== clock.wallMs - clock.nowMs) this.#backOffs.delete(identity);
    }
  }

  /** No wait exceeds the maximum, and none follows a long enough run. */
  #waits({ pod, container, time, until = time, atMs }: SimEntry): void {
    const { clock, node } = this.#scene;
    const key = `${pod?.uid}/${container}`;
    const last = this.#lastExit.get(key);
    if (last === undefined) return;
    if (clock.wallMs - clock.nowMs !== last.wallOffsetMs) {
      // A later run dates the end by the wall clock: what an earlier one reported about the wait is void.
      if (last.seenInLife !== node.lives) delete last.untilMs;
      return;
    }
    last.seenInLife = node.lives;
    last.untilMs = atMs + until - time;
    const waitMs = last.untilMs - last.atMs;
    if (waitMs > longestDelayMs + roundingMs) this.#broken("back-off", `${key} waits ${waitMs} ms`);
    const ranMs = last.atMs - last.container.startedMs;
    // A later run dates recorded restarts by the wall clock.
    const start = this.#starts.get(last.container);
    const isDated = start?.life === node.lives || start?.wallOffsetMs === last.wallOffsetMs;
    const isLong = last.tried !== true && ranMs > forgottenMs + startMs && isDated;
    if (isLong) this.#broken("back-off", `${key} waits after it ran for ${ranMs} ms`);
  }

  #retries({ pod, container, cause, time, until = time }: SimEntry): void {
    const waitMs = until - time;
    if (cause?.code !== "RestartAllContainers" || waitMs <= retryMs + roundingMs) return;
    this.#broken("back-off", `${pod?.uid}/${container} retries a restart of all containers after ${waitMs} ms`);
  }

  /** What is to be stopped for its restart counts as stopped: podwright records that before, and may be killed then. */
  #decided({ pod, message }: SimEntry): void {
    const uid = pod?.uid ?? "";
    const stopped = message.matchAll(/\b(?:stop|restart) container (\S+) (?:\(|to resize)/gu);
    const names = new Set([...stopped].map(([, name]) => name));
    for (const container of this.#scene.world.containers.values()) {
      const isOwn = container.config.labels["io.kubernetes.pod.uid"] === uid;
      const isStopped = names.has(nameOf(container)) || /^stop the pod\b.*; create sandbox\b/u.test(message);
      if (isOwn && isStopped) this.#stopping.add(container);
    }
  }

  #exited(container: SimContainer, uid: string): void {
    const { clock, pods } = this.#scene;
    // A container that never ran has not ended.
    if (container.startedAt === 0n) return;
    const name = nameOf(container);
    // A container that the runtime lost is recreated immediately, whatever its policy.
    if (container.wasLost) return void this.#lastExit.delete(`${uid}/${name}`);
    const stopped = this.#stopping.has(container);
    this.#lastExit.set(`${uid}/${name}`, { container, atMs: clock.nowMs, ...this.#now(), stopped });
    const pod = pods.get(uid);
    if (pod !== undefined && restartsAll(specOf(pod, name), container.exitCode)) this.#startedOver.add(uid);
  }

  #now(): Dated {
    const { clock, node } = this.#scene;
    return { life: node.lives, wallOffsetMs: clock.wallMs - clock.nowMs };
  }

  /** Removed containers of an undesired pod are forgotten: the pod may be desired again before its sandbox is gone. */
  #removed(container: SimContainer, uid: string): void {
    const key = `${uid}/${nameOf(container)}`;
    if (this.#scene.unwanted.has(uid) && this.#lastExit.get(key)?.container === container) this.#lastExit.delete(key);
  }

  #started(container: SimContainer, uid: string): void {
    const name = nameOf(container);
    const key = `${uid}/${name}`;
    const last = this.#lastExit.get(key);
    this.#starts.set(container, last?.triedIn ?? this.#now());
    const pod = this.#scene.pods.get(uid);
    if (last === undefined || pod === undefined) return;
    const [before, now] = [attemptOf(last.container), attemptOf(container)];
    if (now <= before) this.#broken("restart counts grow", `${key} went from ${before} to ${now}`);
    const spec = specOf(pod, name);
    const isNewSandbox = last.container.sandboxId !== container.sandboxId;
    const isOther = last.container.config.image?.image !== container.config.image?.image;
    const isFree = this.#startedOver.has(uid);
    if (isFree || isOther || spec === undefined) return;
    this.#judgePolicy(pod, spec, last, isNewSandbox);
    if (isNewSandbox) this.#judgeWait(pod, spec, last);
    else this.#judgeBackOff(key, last, spec, container.config.image?.image ?? "");
  }

  /** In a new sandbox, too, a regular container waits as long as podwright has reported. */
  #judgeWait(pod: Pod, spec: Container, { untilMs, seenInLife }: Exit): void {
    const { clock, node } = this.#scene;
    const key = `${pod.metadata.uid}/${spec.name}`;
    const isKnown = seenInLife === node.lives && pod.spec.containers.includes(spec) && !this.#resized.has(key);
    if (!isKnown || untilMs === undefined || clock.nowMs >= untilMs - roundingMs) return;
    this.#broken("back-off", `${key} was started in a new sandbox ${untilMs - clock.nowMs} ms too early`);
  }

  #judgePolicy(pod: Pod, spec: Container, last: Exit, isNewSandbox: boolean): void {
    const { exitCode, reason } = last.container;
    const key = `${pod.metadata.uid}/${spec.name}`;
    const isInit = pod.spec.initContainers?.includes(spec) === true;
    if (isInit && isNewSandbox && runsOnce(pod)) this.#broken("restart policy", `${key} ran again under Never`);
    // In a new sandbox init containers run again.
    if (isInit && (isNewSandbox || spec.restartPolicy === "Always")) return;
    if (spec.restartPolicyRules?.some(({ exitCodes }) => exitCodes?.values?.includes(exitCode)) === true) return;
    const policy = spec.restartPolicy ?? pod.spec.restartPolicy ?? "Always";
    if (policy === "Never") this.#broken("restart policy", `${key} restarted under Never`);
    const succeeded = exitCode === 0 && reason === "Completed" && !last.stopped;
    if (policy === "OnFailure" && succeeded) this.#broken("restart policy", `${key} succeeded and restarted`);
  }

  #judgeBackOff(key: string, last: Exit, spec: Container, image: string): void {
    const { clock, node } = this.#scene;
    const { untilMs = clock.nowMs, resumedMs = clock.nowMs } = last;
    const isSound = node.soundSinceMs + recoveredMs < untilMs;
    if (isSound && resumedMs > untilMs + startMs) {
      this.#broken("back-off", `${key} was restarted ${resumedMs - untilMs} ms after its back-off was over`);
    }
    const identity = `${key} ${image}`;
    // Changed resources reset the back-off, whenever podwright learns of them and has room.
    const desired = node.desired.get(key.split("/")[0] ?? "");
    const isOther = desired !== undefined && resourcesOf(desired, spec.name) !== JSON.stringify(spec.resources ?? {});
    if (isOther || this.#resized.has(key)) return;
    const known = this.#backOffs.get(identity);
    // A run reads what an earlier one has recorded when it learns of the pod, and dates it by the wall clock of then.
    const isOfNow = known?.life === node.lives || known?.wallOffsetMs === clock.wallMs - clock.nowMs;
    const live = isOfNow && last.atMs - known.sinceMs <= forgottenMs ? known : undefined;
    const waitedMs = clock.nowMs - last.atMs;
    // An exit is dated by the wall clock when it is first seen.
    const clockJumped = clock.wallMs - clock.nowMs !== last.wallOffsetMs && last.seenInLife !== node.lives;
    if (live !== undefined && !clockJumped && waitedMs < live.delayMs - roundingMs) {
      this.#broken("back-off", `${key} restarted ${waitedMs} ms after its exit instead of ${live.delayMs}`);
    }
    // A restart that an earlier run had begun is not counted again.
    if (last.life !== node.lives) return;
    const delayMs = live === undefined ? firstDelayMs : Math.min(2 * live.delayMs, longestDelayMs);
    // The record is dated when the restart is decided, between the exit and now.
    const isDated = clock.wallMs - clock.nowMs === last.wallOffsetMs;
    this.#backOffs.set(identity, {
      delayMs,
      sinceMs: last.triedMs ?? clock.nowMs,
      life: node.lives,
      wallOffsetMs: isDated ? last.wallOffsetMs : Number.NaN,
    });
  }
}

/** Only time keeps the container from running again. */
function mayAlwaysRestart(pod: Pod, name: string): boolean {
  const spec = pod.spec.containers.find((container) => container.name === name);
  if (spec === undefined || (spec.restartPolicy ?? pod.spec.restartPolicy) !== "Always") return false;
  const hasEnded = pod.spec.activeDeadlineSeconds !== undefined;
  const needsOthers = (pod.spec.initContainers ?? []).length > 0 || spec.env !== undefined;
  const needsPort = pod.spec.containers.some(({ ports }) => ports !== undefined);
  const isLate = (pod.spec.volumes ?? []).some((volume) => volume.name === "late");
  const hasImage = spec.image === "busybox" && imageVolumesOf(pod, spec).length === 0;
  return !hasEnded && !needsOthers && !needsPort && !isLate && hasImage;
}

/** No regular container ever runs again. */
function runsOnce({ spec: { restartPolicy, containers } }: Pod): boolean {
  return containers.every((container) => {
    return (container.restartPolicy ?? restartPolicy) === "Never" && container.restartPolicyRules === undefined;
  });
}

function specOf(pod: Pod, name: string): Container | undefined {
  return containersOf(pod.spec).find((container) => container.name === name);
}

function resourcesOf(pod: Pod, name: string): string {
  return JSON.stringify(specOf(pod, name)?.resources ?? {});
}
