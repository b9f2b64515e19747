import type { Pod } from "../../api/pod.ts";
import { isRejection, type EntryName } from "../../journal/vocabulary.ts";
import { lifeStarted } from "../../journal/entry.ts";
import type { SimEntry } from "../life/node.ts";
import { isExternal } from "../../volumes/volume-set-up.ts";
import { type Break, recoveredMs, type Rule, type Scene } from "./rule.ts";

const podsDirectory = "/var/lib/kubelet/pods";
/** Maximum time of a pod for its sandbox, or for its removal, with slow calls. */
const longestMs = 60_000;
/** So long a start takes. */
const startedMs = 20_000;
/** Interval between checks for leftovers on disk. */
const lookMs = 10_000;

/** Entries that end a pod's wait for its sandbox, for any reason. */
const ends: ReadonlySet<EntryName> = new Set<EntryName>([
  ...(["RunPodSandbox", "AdmissionWaits", "PodWaits", "PodTerminating", "PodFinished", "PodRemoved"] as const),
  "Preempting",
]);

/** While a driver does not answer, pods without volumes of drivers begin and end as ever. */
export class DriverWaits implements Rule {
  readonly #scene: Scene;
  readonly #broken: Break;
  /** Pods that are to get their sandbox, since when. */
  readonly #coming = new Map<string, number>();
  /** Undesired pods with files on disk, and when they were first seen. */
  readonly #left = new Map<string, number>();
  #lookedMs = 0;

  constructor(scene: Scene, broken: Break) {
    this.#scene = scene;
    this.#broken = broken;
  }

  entry({ what, pod: ref, atMs }: SimEntry): void {
    if (what === lifeStarted) for (const known of [this.#coming, this.#left]) known.clear();
    if (this.#scene.node.drivers.all.length === 0) return;
    const uid = ref?.uid ?? "";
    const pod = this.#scene.pods.get(uid);
    if (what === "PodAdded" && pod !== undefined && !needsOthers(pod) && !this.#hasSandbox(uid)) {
      this.#coming.set(uid, atMs);
    }
    if (ends.has(what) || isRejection(what)) this.#coming.delete(uid);
    if (atMs < this.#lookedMs + lookMs) return;
    this.#lookedMs = atMs;
    this.#judge(atMs);
  }

  #judge(nowMs: number): void {
    const { node, pods } = this.#scene;
    for (const [uid, sinceMs] of this.#coming) {
      if (!this.#isSound(sinceMs) || nowMs < sinceMs + longestMs) continue;
      this.#coming.delete(uid);
      this.#broken("pods wait only for their own drivers", `${uid} has no sandbox ${nowMs - sinceMs} ms after it came`);
    }
    for (const uid of pods.keys()) {
      const isLeft = !node.desired.has(uid) && !node.isEnding(uid) && this.#hasFiles(uid);
      if (!isLeft || this.#hasFiles(uid, "/volumes/kubernetes.io~csi")) {
        this.#left.delete(uid);
        continue;
      }
      const sinceMs = this.#left.get(uid) ?? nowMs;
      this.#left.set(uid, sinceMs);
      if (!this.#isSound(sinceMs) || nowMs < sinceMs + longestMs) continue;
      this.#left.delete(uid);
      this.#broken("pods wait only for their own drivers", `${uid} has left files for ${nowMs - sinceMs} ms`);
    }
  }

  /** Of an earlier run. */
  #hasSandbox(uid: string): boolean {
    const sandboxes = [...this.#scene.world.sandboxes.values()];
    return sandboxes.some(({ ready, config }) => ready && config.metadata?.uid === uid);
  }

  #hasFiles(uid: string, below = ""): boolean {
    return this.#scene.node.files.ownerOf(`${podsDirectory}/${uid}${below}`) !== undefined;
  }

  /** Nothing but drivers has failed since long before. */
  #isSound(sinceMs: number): boolean {
    const { node, clock } = this.#scene;
    const quietMs = node.callsAreTimely ? startedMs : recoveredMs;
    const isWell = node.knowsAllPods && node.slowness === 1 && clock.nowMs > node.soundSinceMs + quietMs;
    return isWell && sinceMs > Math.max(node.soundSinceMs + quietMs, node.apiTroubleMs + recoveredMs);
  }
}

/** The pod has volumes of drivers, or waits for an object that may never come. */
function needsOthers({ spec }: Pod): boolean {
  const { volumes = [], containers, initContainers = [] } = spec;
  const isLate = [...containers, ...initContainers].some(({ env = [] }) =>
    env.some(({ valueFrom }) => valueFrom?.configMapKeyRef?.name === "late"),
  );
  return isLate || volumes.some((volume) => isExternal(volume) || volume.name === "late");
}
