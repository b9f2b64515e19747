import { errorMessage } from "../../base/errors.ts";
import type { PodUid } from "../../base/ids.ts";
import { oneByOne } from "../../base/one-by-one.ts";
import type { Cause, PodRef } from "../../journal/entry.ts";
import { perform } from "../../journal/perform.ts";
import type { Effects } from "../effects.ts";
import type { NodeContext } from "../node-context.ts";
import type { GarbageCollector, PartsRemoved } from "./collect-garbage.ts";
import type { ContainerRemoval } from "./container-removal.ts";
import type { RemovedContainer } from "./removed-lately.ts";
import { type GarbagePolicy, nodeGarbage } from "../actions/garbage.ts";
import { type UnusedParts, unusedParts } from "../actions/unused.ts";
import { isDeadLink, type LogLink, logLinks, removeLogLinks } from "../layout/log-links.ts";
import { podOfLogDirectory } from "../layout/log-paths.ts";
import { podDirectory } from "../layout/pod-directories.ts";
import type { PodHolding, PodHoldings } from "../pod-holdings.ts";
import type { PodStatus } from "../status/pod-status.ts";

/** Logs of unknown pods stay for so long after they were last changed. */
const youngLogsMs = 600_000;
/** What was removed is not removed again for so long, because a runtime that hangs lists it still as it was before. */
const unseenMs = 60_000;
const ofEvicted: Cause = { code: "ContainerGC", message: "its pod was evicted" };
const nothingRemoved: PartsRemoved = { containers: [], sandboxes: [], failures: [] };
const unknownPod = { namespace: "", name: "", sandboxes: [], containers: [] } as const;

export interface NodeGarbageConfig extends GarbagePolicy {
  /** Interval between collections: 60 s. */
  readonly periodMs: number;
}

export interface NodeGarbageDependencies {
  readonly effects: Pick<Effects, "clock" | "files" | "journal" | "log">;
  readonly removal: Pick<ContainerRemoval, "removeDead" | "lately">;
  readonly collector: Pick<GarbageCollector, "removeParts">;
  readonly holdings: PodHoldings;
  readonly node: Pick<NodeContext, "rootDirectory" | "podLogsRoot" | "containerLogsRoot">;
  /** True once the desired pods and the runtime's pods are known. */
  readonly ready: () => boolean;
  /** Pods of this node, as last observed. */
  readonly pods: () => readonly PodStatus[];
  /** The same of one pod. */
  readonly pod: (uid: PodUid) => PodStatus | undefined;
  /** True for a pod that is desired, or still in the runtime. */
  readonly known: (uid: PodUid) => boolean;
  /** True for a pod that has ended, and whose end is known elsewhere than from what it left in the runtime. */
  readonly isOver: (uid: PodUid) => boolean;
  /** True for a pod that has ended because it was evicted, and never runs again, whatever is left of it. */
  readonly isEvicted: (uid: PodUid) => boolean;
  /**
   * The owners of unknown pods' logs: queried once per collection. Undefined: this node never removes such logs, e.g.
   * because its own are deleted with its pods' directories.
   */
  readonly logOwners?: (() => Promise<LogOwners>) | undefined;
}

/** Which pods other nodes of this machine have, whose logs may be in the same place. */
export interface LogOwners {
  /** Whether another node of this machine has files of the pod. */
  has(uid: PodUid): Promise<boolean>;
}

/**
 * Collects garbage that belongs to no pod's worker (HandlePodCleanups, containerGC): links to missing logs, holdings of
 * removed pods, and dead containers beyond the node's limit. Other leftovers are removed with their pod, or by its
 * worker while it runs.
 */
export class NodeGarbage {
  readonly #deps: NodeGarbageDependencies;
  readonly #config: NodeGarbageConfig;
  /** When containers and sandboxes were removed, by ID, monotonic ms. */
  readonly #removedMs = new Map<string, number>();

  constructor(deps: NodeGarbageDependencies, config: NodeGarbageConfig) {
    this.#deps = deps;
    this.#config = config;
  }

  /** False while it is not known what is wanted, or what the runtime has: nothing is garbage then. */
  get isReady(): boolean {
    return this.#deps.ready();
  }

  /** Collects periodically until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps.effects;
    while (!signal.aborted) {
      await clock.sleep("next garbage collection", this.#config.periodMs, signal).catch(() => {});
      if (!signal.aborted && this.#deps.ready()) await this.collect(signal);
    }
  }

  /** One collection; failures are reported and retried by the next. */
  async collect(signal: AbortSignal): Promise<void> {
    const { effects, logOwners } = this.#deps;
    const { log, journal } = effects;
    let asked: Promise<LogOwners> | undefined;
    const owners = async (): Promise<LogOwners | undefined> => await (asked ??= logOwners?.());
    const steps = [
      { step: async () => await this.#ofEvicted(signal), hasEvent: true },
      { step: async () => await this.#containers(signal), hasEvent: true },
      { step: async () => await this.#strayLogs(await owners(), signal), hasEvent: true },
      { step: async () => await this.#links(await owners(), signal), hasEvent: true },
      { step: async () => await this.#leftovers(signal), hasEvent: false },
    ];
    for (const { step, hasEvent } of steps) {
      try {
        await step();
      } catch (error) {
        if (signal.aborted) return;
        const message = errorMessage(error);
        log.warn("garbage collection failed", { error: message });
        // Upstream's event of the node, which has none for holdings.
        if (hasEvent) journal.record({ kind: "note", what: "ContainerGCFailed", message });
      }
    }
  }

  /** What {@link removeUnused} would remove of each pod that is known, and why the rest stays. */
  unused(): readonly { readonly status: PodStatus; readonly parts: UnusedParts }[] {
    const { pods, isEvicted, isOver, effects } = this.#deps;
    const nowMs = effects.clock.now();
    return pods().map((status) => {
      const { uid } = status;
      return { status, parts: unusedParts(status, this.#config, isOver(uid) || isEvicted(uid), nowMs) };
    });
  }

  /**
   * Removes dead containers and sandboxes at once, including those of ended and of evicted pods, as required by a node
   * that runs out of space. Rejects only with the signal's reason; failures are reported.
   */
  async removeUnused(cause: Cause, signal: AbortSignal): Promise<PartsRemoved> {
    if (!this.#deps.ready()) return nothingRemoved;
    // Housekeeping, whatever it is done for: it does not explain the state of the pod.
    const why: Cause = { code: "ContainerGC", message: "it is not needed any more", because: cause };
    const removed: PartsRemoved[] = [];
    for (const { status, parts } of this.unused()) {
      removed.push(await this.#removeParts(status, parts, why, signal));
    }
    return together(removed);
  }

  /**
   * Removes all dead containers of evicted pods, so that their space is free before another pod is evicted for it: also
   * of pods whose end only their containers show, because theirs is recorded with the eviction. Otherwise like
   * {@link removeUnused}.
   * @returns all containers of evicted pods that were removed so lately that their space may not be free yet
   */
  async removeEvicted(cause: Cause, signal: AbortSignal): Promise<readonly RemovedContainer[]> {
    const { isEvicted, ready } = this.#deps;
    if (!ready()) return [];
    await this.#removeOf(isEvicted, { ...ofEvicted, because: cause }, signal);
    return this.removedLately.filter(({ uid }) => isEvicted(uid));
  }

  /** Containers that were removed so lately, by whatever, that their space may not be free yet. */
  get removedLately(): readonly RemovedContainer[] {
    return this.#deps.removal.lately;
  }

  /** Upstream removes all content of evicted pods, too, to free resources. */
  async #ofEvicted(signal: AbortSignal): Promise<void> {
    const { isEvicted, isOver } = this.#deps;
    await this.#removeOf((uid) => isEvicted(uid) && isOver(uid), ofEvicted, signal);
  }

  /** Removes all dead parts of some pods. */
  async #removeOf(goes: (uid: PodUid) => boolean, cause: Cause, signal: AbortSignal): Promise<void> {
    const { pods, effects } = this.#deps;
    for (const status of pods()) {
      if (!goes(status.uid)) continue;
      const parts = unusedParts(status, this.#config, true, effects.clock.now());
      if (parts.containers.length + parts.sandboxes.length === 0) continue;
      await this.#removeParts(status, parts, cause, signal);
    }
  }

  async #removeParts(
    status: PodStatus,
    { containers, sandboxes }: Pick<UnusedParts, "containers" | "sandboxes">,
    cause: Cause,
    signal: AbortSignal,
  ): Promise<PartsRemoved> {
    const { clock } = this.#deps.effects;
    for (const [id, atMs] of this.#removedMs) if (clock.monotonic() - atMs >= unseenMs) this.#removedMs.delete(id);
    const isLeft = ({ id }: { readonly id: string }): boolean => !this.#removedMs.has(id);
    const left = { containers: containers.filter(isLeft), sandboxes: sandboxes.filter(isLeft) };
    const removed = await this.#deps.collector.removeParts(refOf(status), left, cause, signal);
    for (const id of [...removed.containers, ...removed.sandboxes]) this.#removedMs.set(id, clock.monotonic());
    return removed;
  }

  async #containers(signal: AbortSignal): Promise<void> {
    const { effects, removal, pods } = this.#deps;
    const { maxContainers } = this.#config;
    const cause: Cause = { code: "ContainerGC", message: `the node keeps at most ${maxContainers} dead containers` };
    const dead = nodeGarbage(pods(), this.#config, effects.clock.now());
    await oneByOne(dead, signal, ({ status, container }) =>
      removal.removeDead(refOf(status), container, cause, signal),
    );
  }

  /** Logs of pods that neither this node nor another node of this machine knows. */
  async #strayLogs(owners: LogOwners | undefined, signal: AbortSignal): Promise<void> {
    const { effects, node } = this.#deps;
    if (owners === undefined) return;
    await oneByOne(await effects.files.list(node.podLogsRoot), signal, async ({ name, type }) => {
      const pod = podOfLogDirectory(name);
      if (type !== "directory" || pod === undefined || (await this.#isSomebodys(pod.uid, owners))) return;
      signal.throwIfAborted();
      await this.#strayLogsOf(pod, `${node.podLogsRoot}/${name}`);
    });
  }

  async #strayLogsOf(pod: PodRef, path: string): Promise<void> {
    const { effects, node } = this.#deps;
    const { files, journal, clock } = effects;
    const cause: Cause = {
      code: "OrphanedPod",
      message: "no source and no node of this machine has the pod",
    };
    // An unregistered node may be about to use it.
    const { modified } = (await files.stat(path)) ?? { modified: clock.now() };
    if (clock.now() - modified < youngLogsMs) return;
    await perform(journal, clock, { what: "RemovePodLogs", message: `remove ${path}`, pod, cause }, async () => {
      await removeLogLinks(files, node, pod);
      await files.removeTree(path);
    });
  }

  /** One that has a directory of this node is removed with that. */
  async #isSomebodys(uid: PodUid, owners: LogOwners): Promise<boolean> {
    const { effects, known, node } = this.#deps;
    if (known(uid) || (await effects.files.stat(podDirectory(node, uid))) !== undefined) return true;
    return (await owners.has(uid)) || known(uid);
  }

  async #links(owners: LogOwners | undefined, signal: AbortSignal): Promise<void> {
    const { effects, node } = this.#deps;
    await oneByOne(await logLinks(effects.files, node), signal, async (link) => await this.#link(link, owners));
  }

  async #link(link: LogLink, owners: LogOwners | undefined): Promise<void> {
    const { effects, pod } = this.#deps;
    const { files, journal, clock } = effects;
    // Only of this node's and of unknown pods: logs of another node may be in the same directory.
    const status = pod(link.podUid) ?? { ...unknownPod, uid: link.podUid };
    const isOwn = status.name !== "";
    if (!isOwn && (owners === undefined || (await this.#isSomebodys(link.podUid, owners)))) return;
    const mayWrite = (id: string | undefined): boolean =>
      status.containers.some((container) => container.state !== "exited" && (id === undefined || container.id === id));
    if (!(await isDeadLink(files, link, mayWrite))) return;
    const cause: Cause = { code: "LogMissing", message: `${link.target} does not exist` };
    const message = `remove the link ${link.path}`;
    await perform(journal, clock, { what: "RemoveLogLink", message, pod: refOf(status), cause }, () =>
      files.remove(link.path),
    );
  }

  async #leftovers(signal: AbortSignal): Promise<void> {
    await oneByOne(this.#deps.holdings.all, signal, async (holding) => await this.#leftoversOf(holding, signal));
  }

  async #leftoversOf(holding: PodHolding, signal: AbortSignal): Promise<void> {
    const { effects, node, known } = this.#deps;
    const { files, journal, clock } = effects;
    const { name, leftovers } = holding;
    if (leftovers === undefined) return;
    const cause: Cause = { code: "OrphanedPod", message: "neither a source nor the runtime has the pod" };
    await oneByOne(await leftovers.uids(), signal, async (uid) => {
      // One with a directory is removed with it, mounts first.
      if (known(uid) || (await files.stat(podDirectory(node, uid))) !== undefined) return;
      if (known(uid)) return;
      const pod = { uid, namespace: "", name: "" };
      const message = `remove the ${name} of pod ${uid}`;
      await perform(journal, clock, { what: leftovers.what, message, pod, cause }, () =>
        holding.release(pod, { cause, comesBack: false }, signal),
      );
    });
  }
}

function together(each: readonly PartsRemoved[]): PartsRemoved {
  return {
    containers: each.flatMap(({ containers }) => containers),
    sandboxes: each.flatMap(({ sandboxes }) => sandboxes),
    failures: each.flatMap(({ failures }) => failures),
  };
}

function refOf({ uid, namespace, name }: PodStatus): { uid: PodUid; namespace: string; name: string } {
  return { uid, namespace, name };
}
