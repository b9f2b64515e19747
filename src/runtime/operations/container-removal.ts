import type { Cause, PodRef } from "../../journal/entry.ts";
import { perform } from "../../journal/perform.ts";
import { minimumGraceSeconds } from "../actions/grace.ts";
import { shortId } from "../actions/sandbox-actions.ts";
import type { Effects } from "../effects.ts";
import { unlinkLog } from "../layout/log-links.ts";
import { containerLogLinkName, containerLogPath, podLogDirectory, restartCountOfLog } from "../layout/log-paths.ts";
import type { NodeContext } from "../node-context.ts";
import type { ContainerStatus } from "../status/pod-status.ts";
import { ignoreNotFound } from "./ignore-not-found.ts";
import type { PreStopHooks } from "./pre-stop-hooks.ts";
import { tellKill } from "./tell-kill.ts";

type RemovalEffects = Pick<Effects, "clock" | "cri" | "files" | "journal">;

export interface ContainerRemovalParts {
  readonly preStops: PreStopHooks;
  readonly node: Pick<NodeContext, "containerLogsRoot" | "podLogsRoot">;
}

/** Removes containers from the runtime, with what they left. Each may be done again: one that is gone is removed. */
export class ContainerRemoval {
  readonly #effects: RemovalEffects;
  readonly #preStops: PreStopHooks;
  readonly #node: ContainerRemovalParts["node"];

  constructor(effects: RemovalEffects, { preStops, node }: ContainerRemovalParts) {
    this.#effects = effects;
    this.#preStops = preStops;
    this.#node = node;
  }

  /**
   * Removes one dead container with its log and the link to that. The container goes last: as long as it is there, a
   * later life finds what has to be removed.
   * @param keepsLog its log stays, and those of instances before it go: the next count goes on from there
   * @throws CriError or FileError
   */
  async remove(
    pod: PodRef,
    container: ContainerStatus,
    { cause, keepsLog = false }: { readonly cause: Cause; readonly keepsLog?: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    const { id, name } = container;
    const message = `remove container ${name} (${shortId(id)})`;
    await this.#perform("RemoveContainer", message, { pod, id, name, cause }, async () => {
      await this.#removeLog(pod, container, keepsLog);
      await this.#removeFromRuntime(id, signal);
    });
    this.#preStops.forget(id);
  }

  /** The same; a container of which the runtime does not know the state may run, and is stopped before. */
  async removeDead(pod: PodRef, container: ContainerStatus, cause: Cause, signal: AbortSignal): Promise<void> {
    const { id, name } = container;
    if (container.state === "unknown") {
      const message = `stop container ${name} (${shortId(id)}), whose state the runtime does not know`;
      const eventMessage = "Container is in unknown state, try killing it before removal";
      tellKill({ journal: this.#effects.journal, preStops: this.#preStops }, pod, { id, name, eventMessage }, cause);
      const action = { pod, id, name, cause, graceSeconds: minimumGraceSeconds };
      await this.#perform("StopContainer", message, action, () => this.#stop(id, minimumGraceSeconds, signal));
    }
    await this.remove(pod, container, { cause }, signal);
  }

  /**
   * Removes an instance that was created and never started: it blocks its name and attempt. Nothing ran in it, so it is
   * killed: what stands in its place until then may know no stop signal, and some runtimes (CRI-O) would wait for its end
   * for nearly as long as the call may take.
   * @throws CriError
   */
  async removeUnstarted(
    pod: PodRef,
    { id, name }: Pick<ContainerStatus, "id" | "name">,
    cause: Cause,
    signal: AbortSignal,
  ): Promise<void> {
    // It would lead to the log of the next instance, which has a link of its own. The container goes last, so that a next
    // life knows what is left to do.
    await unlinkLog({ files: this.#effects.files, node: this.#node }, pod, { name, id });
    const message = `remove container ${name} (${shortId(id)}), created but never started`;
    await this.#perform("RemoveContainer", message, { pod, id, name, cause }, async () => {
      await this.#stop(id, 0, signal);
      await this.#removeFromRuntime(id, signal);
    });
  }

  /** Removes a container whose pod starts over: its log stays. @throws CriError */
  async removeStartedOver(
    pod: PodRef,
    { id, name }: Pick<ContainerStatus, "id" | "name">,
    cause: Cause,
    signal: AbortSignal,
  ): Promise<void> {
    const message = `remove container ${name} (${shortId(id)}), its pod restarts all containers`;
    await this.#perform("RemoveContainer", message, { pod, id, name, cause }, () =>
      this.#removeFromRuntime(id, signal),
    );
    this.#preStops.forget(id);
  }

  #perform(
    what: "RemoveContainer" | "StopContainer",
    message: string,
    about: Subject,
    work: () => Promise<void>,
  ): Promise<void> {
    const { pod, name, cause, id, graceSeconds } = about;
    const data = { id, ...(graceSeconds !== undefined && { graceSeconds }) };
    const { journal, clock } = this.#effects;
    return perform(journal, clock, { what, message, pod, container: name, cause, data }, work);
  }

  #stop(containerId: string, graceSeconds: number, signal: AbortSignal): Promise<void> {
    const request = { containerId, timeout: BigInt(graceSeconds) };
    return ignoreNotFound(this.#effects.cri.runtime.stopContainer(request, { signal }));
  }

  #removeFromRuntime(containerId: string, signal: AbortSignal): Promise<void> {
    return ignoreNotFound(this.#effects.cri.runtime.removeContainer({ containerId }, { signal }));
  }

  /** The log of one instance, what rotation made of it, and the link; or logs of those before it, and the link. */
  async #removeLog(pod: PodRef, container: ContainerStatus, keepsLog: boolean): Promise<void> {
    const { files } = this.#effects;
    const podLogs = podLogDirectory(this.#node.podLogsRoot, pod);
    const path = `${podLogs}/${containerLogPath(container.name, container.restartCount)}`;
    const directory = path.slice(0, path.lastIndexOf("/"));
    const goes = (name: string): boolean => {
      const count = restartCountOfLog(name) ?? Infinity;
      return keepsLog ? count < container.restartCount : count === container.restartCount;
    };
    // A pod that may write to the node's logs could have put a link there, to where the same names mean something else.
    const isOwn = (await this.#isDirectory(podLogs)) && (await this.#isDirectory(directory));
    for (const entry of isOwn ? await files.list(directory) : []) {
      if (goes(entry.name)) await files.remove(`${directory}/${entry.name}`);
    }
    await files.remove(`${this.#node.containerLogsRoot}/${containerLogLinkName(pod, container.name, container.id)}`);
  }

  async #isDirectory(path: string): Promise<boolean> {
    return (await this.#effects.files.stat(path))?.type === "directory";
  }
}

/** The container that something is done to, and why. */
interface Subject {
  readonly pod: PodRef;
  readonly id: string;
  readonly name: string;
  readonly cause: Cause;
  readonly graceSeconds?: number;
}
