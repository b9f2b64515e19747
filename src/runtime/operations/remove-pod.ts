import { invariant } from "../../base/invariant.ts";
import { settleAll } from "../../base/side-by-side.ts";
import type { Cause, PodRef } from "../../journal/entry.ts";
import { type ActionInput, perform } from "../../journal/perform.ts";
import { shortId } from "../actions/sandbox-actions.ts";
import type { Effects } from "../effects.ts";
import type { PodHoldings, Release } from "../pod-holdings.ts";
import type { ContainerStatus, PodStatus } from "../status/pod-status.ts";
import { hasStopped } from "../status/remains.ts";
import type { ContainerRemoval } from "./container-removal.ts";
import { ignoreNotFound } from "./ignore-not-found.ts";
import type { StartAttempts } from "./start-attempts.ts";
import type { Teardowns } from "./teardown.ts";

export interface RemoverParts {
  readonly removal: ContainerRemoval;
  readonly teardowns: Teardowns;
  readonly attempts: StartAttempts;
  readonly holdings: PodHoldings;
}

export interface Removal extends Release {
  /** It has ended for good, and this run has released its shared resources. */
  readonly hasReleased: boolean;
}

/** Removes stopped pods. */
export class PodRemover {
  readonly #effects: Pick<Effects, "clock" | "cri" | "journal">;
  readonly #parts: RemoverParts;

  constructor(effects: Pick<Effects, "clock" | "cri" | "journal">, parts: RemoverParts) {
    this.#effects = effects;
    this.#parts = parts;
  }

  /** Releases an ended pod's shared resources: its logs and messages stay. */
  release(pod: PodRef, cause: Cause, signal: AbortSignal): Promise<void> {
    return this.#parts.holdings.releaseEnded(pod, cause, signal);
  }

  /**
   * Removes everything of a stopped pod: containers, sandboxes, holdings. Each step is idempotent, so a retry completes
   * a failed attempt.
   */
  async remove(pod: PodRef, status: PodStatus, release: Removal, signal: AbortSignal): Promise<void> {
    const { removal, teardowns, attempts, holdings } = this.#parts;
    const { cause, comesBack, hasReleased } = release;
    // Its volumes and cgroup go with it.
    invariant("a pod is removed after it has stopped", hasStopped(status), () => pod.uid);
    await teardowns.run("later", signal, async (queuedMs) => {
      const isLast = ({ name, restartCount }: ContainerStatus): boolean =>
        !status.containers.some((other) => other.name === name && other.restartCount > restartCount);
      await settleAll(
        `removing the containers of pod ${pod.name}`,
        status.containers.map((container) => {
          return removal.remove(pod, container, { cause, keepsLog: comesBack && isLast(container) }, signal);
        }),
      );
      for (const { id } of status.sandboxes) await this.#removeSandbox(pod, id, { cause, queuedMs }, signal);
    });
    attempts.forget(pod.uid);
    if (!hasReleased) await holdings.releaseEnded(pod, cause, signal);
    await holdings.releaseRemoved(pod, release, signal);
  }

  async #removeSandbox(
    pod: PodRef,
    id: string,
    { cause, queuedMs }: { readonly cause: Cause; readonly queuedMs: number },
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, cri, journal } = this.#effects;
    const message = `remove sandbox ${shortId(id)}`;
    const action: ActionInput = { what: "RemovePodSandbox", message, pod, cause, data: { id, queuedMs } };
    await perform(journal, clock, action, () =>
      ignoreNotFound(cri.runtime.removePodSandbox({ podSandboxId: id }, { signal })),
    );
  }
}
