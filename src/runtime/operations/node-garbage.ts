import { errorMessage } from "../../base/errors.ts";
import type { Cause } from "../../journal/entry.ts";
import { perform } from "../../journal/perform.ts";
import type { Effects } from "../effects.ts";
import type { NodeContext } from "../node-context.ts";
import type { ContainerRemoval } from "./container-removal.ts";
import { type GarbagePolicy, nodeGarbage } from "../actions/garbage.ts";
import { isDeadLink, logLinks } from "../layout/log-links.ts";
import { podDirectory } from "../layout/pod-directories.ts";
import type { PodHolding, PodHoldings } from "../pod-holdings.ts";
import type { PodStatus } from "../status/pod-status.ts";

export interface NodeGarbageConfig extends GarbagePolicy {
  /** Interval between collections: 60 s. */
  readonly periodMs: number;
}

export interface NodeGarbageDependencies {
  readonly effects: Pick<Effects, "clock" | "files" | "journal" | "log">;
  readonly removal: Pick<ContainerRemoval, "removeDead">;
  readonly holdings: PodHoldings;
  readonly node: Pick<NodeContext, "rootDirectory" | "podLogsRoot" | "containerLogsRoot">;
  /** True once the desired pods and the runtime's pods are known. */
  readonly ready: () => boolean;
  /** Pods of this node, as last observed. */
  readonly pods: () => readonly PodStatus[];
  /** True for a pod that is desired, or still in the runtime. */
  readonly known: (uid: string) => boolean;
}

/**
 * Collects garbage that belongs to no pod's worker (HandlePodCleanups, containerGC): links to missing logs, holdings of
 * removed pods, and dead containers beyond the node's limit. Other leftovers are removed with their pod, or by its
 * worker while it runs.
 */
export class NodeGarbage {
  readonly #deps: NodeGarbageDependencies;
  readonly #config: NodeGarbageConfig;

  constructor(deps: NodeGarbageDependencies, config: NodeGarbageConfig) {
    this.#deps = deps;
    this.#config = config;
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
    const { log, journal } = this.#deps.effects;
    const steps = [
      { step: this.#containers.bind(this), isTold: true },
      { step: this.#links.bind(this), isTold: true },
      { step: this.#leftovers.bind(this), isTold: false },
    ];
    for (const { step, isTold } of steps) {
      try {
        await step(signal);
      } catch (error) {
        if (signal.aborted) return;
        const message = errorMessage(error);
        log.warn("garbage collection failed", { error: message });
        // Upstream's event of the node, which has none for holdings.
        if (isTold) journal.record({ kind: "note", what: "ContainerGCFailed", message });
      }
    }
  }

  async #containers(signal: AbortSignal): Promise<void> {
    const { effects, removal, pods } = this.#deps;
    const { maxContainers } = this.#config;
    const cause: Cause = { code: "ContainerGC", message: `the node keeps at most ${maxContainers} dead containers` };
    for (const { status, container } of nodeGarbage(pods(), this.#config, effects.clock.now())) {
      await removal.removeDead(refOf(status), container, cause, signal);
    }
  }

  async #links(): Promise<void> {
    const { effects, node, pods } = this.#deps;
    const { files, journal, clock } = effects;
    for (const link of await logLinks(files, node)) {
      // Only of pods of this node: logs may be in one place with those of another one.
      const status = pods().find(({ uid }) => uid === link.podUid);
      if (status === undefined) continue;
      const mayWrite = (id: string | undefined): boolean =>
        status.containers.some(
          (container) => container.state !== "exited" && (id === undefined || container.id === id),
        );
      if (!(await isDeadLink(files, link, mayWrite))) continue;
      const cause: Cause = { code: "LogMissing", message: `${link.target} does not exist` };
      const message = `remove the link ${link.path}`;
      await perform(journal, clock, { what: "RemoveLogLink", message, pod: refOf(status), cause }, () =>
        files.remove(link.path),
      );
    }
  }

  async #leftovers(signal: AbortSignal): Promise<void> {
    for (const holding of this.#deps.holdings.all) await this.#leftoversOf(holding, signal);
  }

  async #leftoversOf(holding: PodHolding, signal: AbortSignal): Promise<void> {
    const { effects, node, known } = this.#deps;
    const { files, journal, clock } = effects;
    const { name, leftovers } = holding;
    if (leftovers === undefined) return;
    const cause: Cause = { code: "OrphanedPod", message: "no source has the pod, nor does the runtime" };
    for (const uid of await leftovers.uids()) {
      // One with a directory is removed with it, mounts first.
      if (known(uid) || (await files.stat(podDirectory(node, uid))) !== undefined) continue;
      if (known(uid)) continue;
      const pod = { uid, namespace: "", name: "" };
      const message = `remove the ${name} of pod ${uid}`;
      await perform(journal, clock, { what: leftovers.what, message, pod, cause }, () =>
        holding.release(pod, { cause, comesBack: false }, signal),
      );
    }
  }
}

function refOf({ uid, namespace, name }: PodStatus): { uid: string; namespace: string; name: string } {
  return { uid, namespace, name };
}
