import { lifeStarted } from "../../journal/entry.ts";
import type { EntryName } from "../../journal/vocabulary.ts";
import type { SimEntry } from "../life/node.ts";
import { attemptOf, nameOf, type SimContainer, type WorldChange } from "../world-model.ts";
import { forgetPod, whereOf } from "./entry-data.ts";
import type { Break, Rule, Scene } from "./rule.ts";

const tries: ReadonlySet<EntryName> = new Set(["PullImage", "ImagePresent", "CreateContainer"]);
const waits: ReadonlySet<EntryName> = new Set(["BackOff", "StartRetry"]);
/** A start has failed, or an attempt is not made: of a container, or of any of its pod. */
const hindrances: ReadonlySet<EntryName> = new Set([
  ...waits,
  ...(["ErrImageNeverPull", "ImageInspectError", "ImagePullBackOff", "InvalidImageName"] as const),
  ...(["ContainerConfigError", "FailedCreatePodContainer", "FailedMakePodDataDirectories"] as const),
]);

/** The container for whose start the pod could not be prepared; undefined: another observation. */
function unprepared({ what, cause }: SimEntry): string | undefined {
  const isPreparation = what === "FailedMakePodDataDirectories" || what === "FailedCreatePodContainer";
  return isPreparation ? /^container (\S+) has not been started yet$/u.exec(cause?.message ?? "")?.[1] : undefined;
}

/**
 * In each sandbox the containers of a pod are first started one after the other, in the order of the spec: none begins
 * before each earlier one was tried, or while one is being created and started.
 */
export class StartOrder implements Rule {
  readonly #scene: Scene;
  readonly #broken: Break;
  /** `uid/name` of containers on which podwright has worked since their pod's sandbox was created. */
  readonly #tried = new Set<string>();
  /** The same, while their first start in it is in progress. */
  readonly #starting = new Set<string>();
  /** Simulated ms at which waits end that podwright reported, likewise. */
  readonly #waiting = new Map<string, number>();
  /** `sandbox/name` of created containers. */
  readonly #made = new Set<string>();
  /** The same of started ones. */
  readonly #begun = new Set<string>();
  /** Simulated ms at which podwright last decided what to do with each pod, by UID. */
  readonly #decidedMs = new Map<string, number>();
  /** The same of the decision that led to its sandbox: what was to start in it. */
  readonly #sinceMs = new Map<string, number>();
  /** Pods that have had an earlier one. */
  readonly #later = new Set<string>();

  constructor(scene: Scene, broken: Break) {
    this.#scene = scene;
    this.#broken = broken;
  }

  reborn(uid: string): void {
    forgetPod(uid, this.#tried, this.#starting, this.#waiting);
    for (const pods of [this.#decidedMs, this.#sinceMs, this.#later]) pods.delete(uid);
  }

  change({ type, podUid: uid, container }: WorldChange): void {
    if (type === "sandboxStarted") {
      if (this.#sinceMs.has(uid)) this.#later.add(uid);
      this.#sinceMs.set(uid, this.#decidedMs.get(uid) ?? this.#scene.clock.nowMs);
      forgetPod(uid, this.#tried, this.#starting);
    }
    if (container === undefined) return;
    const key = `${uid}/${nameOf(container)}`;
    if (type === "created") {
      const before = this.#ahead(this.#made, container, uid).find((other) => this.#starting.has(other));
      if (before !== undefined) this.#broken("spec order", `${key} was created while ${before} was being started`);
    }
    if (type !== "started") return;
    this.#starting.delete(key);
    const before = this.#ahead(this.#begun, container, uid).find((other) => this.#isSkipped(other));
    if (before !== undefined) this.#broken("spec order", `${key} started before ${before} was tried`);
  }

  entry(entry: SimEntry): void {
    const { kind, what, pod, result, atMs, time, until = time } = entry;
    if (what === lifeStarted) this.#starting.clear();
    if (pod === undefined) return;
    if (what === "ComputePodActions") this.#decidedMs.set(pod.uid, atMs);
    if (waits.has(what)) this.#waiting.set(whereOf(entry), atMs + until - time);
    const hasFailed = result !== undefined && result !== "done";
    if (hasFailed || hindrances.has(what)) forgetPod(pod.uid, this.#starting);
    const name = kind === "observation" ? unprepared(entry) : entry.container;
    if (name === undefined) return;
    const isTry = tries.has(what) && kind !== "outcome" && !this.#tried.has(whereOf(entry));
    if (isTry && this.#isFirstStart(entry)) this.#starting.add(whereOf(entry));
    this.#tried.add(`${pod.uid}/${name}`);
  }

  /** Where a container is for the first time among `places`: the keys of those ahead of it in the spec. */
  #ahead(places: Set<string>, container: SimContainer, uid: string): string[] {
    const name = nameOf(container);
    const place = `${container.sandboxId}/${name}`;
    if (places.has(place)) return [];
    places.add(place);
    if (attemptOf(container) > 0 && !this.#later.has(uid)) return [];
    const names = this.#scene.pods.get(uid)?.spec.containers.map((own) => own.name) ?? [];
    return names.slice(0, Math.max(0, names.indexOf(name))).map((before) => `${uid}/${before}`);
  }

  /** It has not been tried, although in a later sandbox it is not over, and was in no wait when that one was decided on. */
  #isSkipped(key: string): boolean {
    const [uid = "", name] = key.split("/");
    const pod = this.#scene.pods.get(uid);
    if (this.#tried.has(key)) return false;
    if (pod === undefined || !this.#later.has(uid)) return true;
    const own = pod.spec.containers.find((container) => container.name === name)?.restartPolicy;
    const isAlways = (own ?? pod.spec.restartPolicy ?? "Always") === "Always";
    return isAlways && (this.#waiting.get(key) ?? 0) < (this.#sinceMs.get(uid) ?? 0);
  }

  /** Not a restart, nor the start of one that the runtime has lost, or that had to wait: these keep no order. */
  #isFirstStart(entry: SimEntry): boolean {
    const { world } = this.#scene;
    const { pod, container } = entry;
    const uid = pod?.uid ?? "";
    if ((this.#waiting.get(whereOf(entry)) ?? 0) > (this.#sinceMs.get(uid) ?? 0)) return false;
    const ready = [...world.sandboxes.values()].filter((each) => each.ready && each.config.metadata?.uid === uid);
    return ![...world.containers.values()].some((each) => {
      const isOwn = nameOf(each) === container && each.config.labels["io.kubernetes.pod.uid"] === uid;
      return isOwn && (each.wasLost || (each.startedAt > 0n && ready.some(({ id }) => id === each.sandboxId)));
    });
  }
}
