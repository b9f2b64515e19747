import { type PodUid, podUid } from "../base/ids.ts";
import type { Cause, PodRef, Recorder } from "../journal/entry.ts";
import { perform } from "../journal/perform.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import { podUidOfLogDirectory } from "../runtime/layout/log-paths.ts";
import { podDirectory } from "../runtime/layout/pod-directories.ts";
import { namesPod } from "../runtime/layout/pod-names.ts";
import type { NodeContext } from "../runtime/node-context.ts";
import type { PodHoldings } from "../runtime/pod-holdings.ts";

/** Between two looks at what is not podwright's to remove: each reads the node's table of mounts. */
const keptLookMs = 30_000;

/** Made by mkfs, for fsck. */
const lostAndFound = "lost+found";
/** What a pod's directory gets before the pod's spec is stored there. */
const madeFirst: ReadonlySet<string> = new Set(["containers", "plugins", "volumes"]);
/** The checkpoint, the IDs of a user namespace, and files of which a kill has left a part. */
const isOfBeginning = /^(?:podwright\.json|userns|podwright-pod\.json\.[a-z]+\.tmp|\.[0-9a-f]+\.tmp)$/u;

interface LeftoverDependencies {
  readonly clock: Clock;
  readonly files: Files;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly node: Pick<NodeContext, "rootDirectory" | "podLogsRoot">;
  readonly holdings: PodHoldings;
}

/**
 * What pods left on disk and in the cgroup tree because podwright stopped before removing it. Only pods with a
 * directory below this node's root count: logs and cgroups may belong to others.
 */
export class PodLeftovers {
  readonly #deps: LeftoverDependencies;
  /** Pods with leftovers that are not podwright's to remove, and when they are checked again (monotonic ms). */
  readonly #kept = new Map<PodUid, number>();
  /** Directories that are no pod's, and when they are checked again (monotonic ms). */
  readonly #others = new Map<PodUid, number>();

  constructor(deps: LeftoverDependencies) {
    this.#deps = deps;
  }

  async podUids(): Promise<ReadonlySet<PodUid>> {
    const entries = await this.#deps.files.list(`${this.#deps.node.rootDirectory}/pods`);
    const uids = new Set(entries.filter((entry) => entry.type === "directory").map((entry) => podUid(entry.name)));
    for (const known of [this.#kept, this.#others]) {
      for (const uid of known.keys()) if (!uids.has(uid)) known.delete(uid);
    }
    return uids;
  }

  /** Paths of directories that are no pod's. */
  get others(): readonly string[] {
    return [...this.#others.keys()].map((name) => podDirectory(this.#deps.node, name));
  }

  /**
   * Whether it is a pod's. Others, such as a copy that somebody made of a pod's directory to save its data, or the
   * `lost+found` of a file system, are left alone.
   */
  async isPods(uid: PodUid): Promise<boolean> {
    const { clock, log, node } = this.#deps;
    const nowMs = clock.monotonic();
    const lookAtMs = this.#others.get(uid);
    if (lookAtMs !== undefined && nowMs < lookAtMs) return false;
    if (await this.#hasTrace(uid)) {
      this.#others.delete(uid);
      return true;
    }
    const path = podDirectory(node, uid);
    if (lookAtMs === undefined) log.warn("directory among those of pods is no pod's", { path });
    this.#others.set(uid, nowMs + keptLookMs);
    return false;
  }

  /** A manifest may name any UID: then the stored spec, logs or something else on the node tell that it was a pod. */
  async #hasTrace(uid: PodUid): Promise<boolean> {
    const { files, holdings, node } = this.#deps;
    if (await namesPod(files, node, uid)) return true;
    const logs = await files.list(node.podLogsRoot);
    if (logs.some(({ name }) => podUidOfLogDirectory(name) === uid)) return true;
    for (const { leftovers } of holdings.all) if ((await leftovers?.uids())?.includes(uid) === true) return true;
    return await this.#hasOnlyBegun(uid);
  }

  /** A start that was cut short before it stored the spec: there is no data yet. */
  async #hasOnlyBegun(uid: PodUid): Promise<boolean> {
    if (uid === lostAndFound) return false;
    const directory = podDirectory(this.#deps.node, uid);
    for (const { name, type } of await this.#deps.files.list(directory)) {
      if (type === "file" ? !isOfBeginning.test(name) : !madeFirst.has(name)) return false;
      if (type !== "file" && (await this.#deps.files.list(`${directory}/${name}`)).length > 0) return false;
    }
    return true;
  }

  /** False: something is left that is not podwright's to remove. */
  async remove(uid: PodUid, signal: AbortSignal): Promise<boolean> {
    const { clock, files, holdings, journal, node } = this.#deps;
    const nowMs = clock.monotonic();
    const lookAtMs = this.#kept.get(uid);
    if (lookAtMs !== undefined && nowMs < lookAtMs) return false;
    if (lookAtMs !== undefined && (await holdings.keep(uid))) {
      this.#kept.set(uid, nowMs + keptLookMs);
      return false;
    }
    const pod = await this.#nameOf(uid);
    const cause: Cause = { code: "OrphanedPod", message: "the pod is gone, but files or cgroups of it remain" };
    const message = `remove the directory, logs and cgroup of pod ${uid}`;
    await perform(journal, clock, { what: "RemoveLeftovers", message, pod, cause }, async () => {
      await holdings.releaseEnded(pod, cause, signal);
      await holdings.releaseRemoved(pod, { cause, comesBack: false }, signal);
    });
    const isGone = (await files.stat(podDirectory(node, uid))) === undefined;
    if (isGone) this.#kept.delete(uid);
    else this.#kept.set(uid, nowMs + keptLookMs);
    return isGone;
  }

  /** The name of the log directory holds the pod's name, if the directory still exists. */
  async #nameOf(uid: PodUid): Promise<PodRef> {
    const logs = await this.#deps.files.list(this.#deps.node.podLogsRoot);
    const directory = logs.find((entry) => podUidOfLogDirectory(entry.name) === uid)?.name ?? "";
    const [namespace = "", name = ""] = directory.split("_");
    return { uid, namespace, name };
  }
}
