import { type PodUid, podUid } from "../base/ids.ts";
import type { Cause, PodRef, Recorder } from "../journal/entry.ts";
import { perform } from "../journal/perform.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import { podUidOfLogDirectory } from "../runtime/layout/log-paths.ts";
import { podDirectory } from "../runtime/layout/pod-directories.ts";
import type { NodeContext } from "../runtime/node-context.ts";
import type { PodHoldings } from "../runtime/pod-holdings.ts";

/** Between two looks at what is not podwright's to remove: each reads the node's table of mounts. */
const keptLookMs = 30_000;

interface LeftoverDependencies {
  readonly clock: Clock;
  readonly files: Files;
  readonly journal: Recorder;
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

  constructor(deps: LeftoverDependencies) {
    this.#deps = deps;
  }

  async podUids(): Promise<ReadonlySet<PodUid>> {
    const entries = await this.#deps.files.list(`${this.#deps.node.rootDirectory}/pods`);
    const uids = new Set(entries.filter((entry) => entry.type === "directory").map((entry) => podUid(entry.name)));
    for (const uid of this.#kept.keys()) if (!uids.has(uid)) this.#kept.delete(uid);
    return uids;
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
