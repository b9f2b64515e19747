import { invariant } from "../../base/invariant.ts";
import type { ContainerId } from "../../base/ids.ts";
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
import { type RemovedContainer, RemovedLately } from "./removed-lately.ts";
import { tellKill } from "./tell-kill.ts";

type RemovalEffects = Pick<Effects, "clock" | "cri" | "files" | "journal">;

export interface ContainerRemovalParts {
  readonly preStops: PreStopHooks;
  readonly node: Pick<NodeContext, "containerLogsRoot" | "podLogsRoot">;
}

/** Removes containers and their leftovers. Idempotent: a missing container counts as removed. */
export class ContainerRemoval {
  readonly #effects: RemovalEffects;
  readonly #preStops: PreStopHooks;
  readonly #node: ContainerRemovalParts["node"];
  readonly #lately = new RemovedLately();

  constructor(effects: RemovalEffects, { preStops, node }: ContainerRemovalParts) {
    this.#effects = effects;
    this.#preStops = preStops;
    this.#node = node;
  }

  /** The containers that were removed lately, in any way. */
  get lately(): readonly RemovedContainer[] {
    return this.#lately.at(this.#effects.clock.monotonic());
  }

  /**
   * Removes one dead container with its log and link. The container is removed last: while it exists, a later run finds
   * what is left to remove.
   * @param keepsLog keep its log and remove those of earlier instances: the restart count continues from it
   * @throws CriError or FileError
   */
  async remove(
    pod: PodRef,
    container: ContainerStatus,
    { cause, keepsLog = false }: { readonly cause: Cause; readonly keepsLog?: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    const { id, name } = container;
    // The runtime would kill it, without its hook and its grace.
    invariant("a container is removed after it has stopped", container.state !== "running", () => `${pod.uid}/${name}`);
    const message = `remove container ${name} (${shortId(id)})`;
    await this.#perform("RemoveContainer", message, { pod, id, name, cause }, async () => {
      await this.#removeLog(pod, container, keepsLog);
      await this.#removeFromRuntime(pod, id, signal);
    });
    this.#preStops.forget(id);
  }

  /** The same for a container in unknown state: it may be running, and is stopped first. */
  async removeDead(pod: PodRef, container: ContainerStatus, cause: Cause, signal: AbortSignal): Promise<void> {
    const { id, name } = container;
    if (container.state === "unknown") {
      const message = `stop container ${name} (${shortId(id)}) in unknown state`;
      const eventMessage = "Container is in unknown state, try killing it before removal";
      tellKill({ journal: this.#effects.journal, preStops: this.#preStops }, pod, { id, name, eventMessage }, cause);
      const action = { pod, id, name, cause, graceSeconds: minimumGraceSeconds };
      await this.#perform("StopContainer", message, action, () => this.#stop(id, minimumGraceSeconds, signal));
    }
    await this.remove(pod, container, { cause }, signal);
  }

  /**
   * Removes an instance that was created but never started: it blocks its name and attempt. Nothing ran in it, so it is
   * killed: its placeholder process may ignore the stop signal, and some runtimes (CRI-O) would wait for nearly the
   * whole call timeout.
   * @throws CriError
   */
  async removeUnstarted(
    pod: PodRef,
    { id, name }: Pick<ContainerStatus, "id" | "name">,
    cause: Cause,
    signal: AbortSignal,
  ): Promise<void> {
    // The link would point to the next instance's log, which has its own. The container is removed last, so that a next
    // run knows what is left.
    await unlinkLog({ files: this.#effects.files, node: this.#node }, pod, { name, id });
    const message = `remove container ${name} (${shortId(id)}), created but never started`;
    await this.#perform("RemoveContainer", message, { pod, id, name, cause }, async () => {
      await this.#stop(id, 0, signal);
      await this.#removeFromRuntime(pod, id, signal);
    });
  }

  /** Removes a container whose pod restarts as a whole: its log stays. @throws CriError */
  async removeStartedOver(
    pod: PodRef,
    { id, name }: Pick<ContainerStatus, "id" | "name">,
    cause: Cause,
    signal: AbortSignal,
  ): Promise<void> {
    const message = `remove container ${name} (${shortId(id)}) for a restart of all containers`;
    await this.#perform("RemoveContainer", message, { pod, id, name, cause }, () =>
      this.#removeFromRuntime(pod, id, signal),
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

  async #removeFromRuntime({ uid }: PodRef, id: ContainerId, signal: AbortSignal): Promise<void> {
    const { cri, clock } = this.#effects;
    await ignoreNotFound(cri.runtime.removeContainer({ containerId: id }, { signal }));
    this.#lately.add({ id, uid, atMs: clock.monotonic() });
  }

  /** One instance's log, its rotated files and the link; or the logs of earlier instances and the link. */
  async #removeLog(pod: PodRef, container: ContainerStatus, keepsLog: boolean): Promise<void> {
    const { files } = this.#effects;
    const podLogs = podLogDirectory(this.#node.podLogsRoot, pod);
    const path = `${podLogs}/${containerLogPath(container.name, container.restartCount)}`;
    const directory = path.slice(0, path.lastIndexOf("/"));
    const goes = (name: string): boolean => {
      const count = restartCountOfLog(name) ?? Infinity;
      return keepsLog ? count < container.restartCount : count === container.restartCount;
    };
    // A pod with write access to the node's logs could have placed a link there, to where the same names mean something
    // else.
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

/** The container to act on, and why. */
interface Subject {
  readonly pod: PodRef;
  readonly id: string;
  readonly name: string;
  readonly cause: Cause;
  readonly graceSeconds?: number;
}
