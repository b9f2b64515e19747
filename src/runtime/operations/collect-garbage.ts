import { errorMessage } from "../../base/errors.ts";
import type { ContainerId, SandboxId } from "../../base/ids.ts";
import type { Cause, PodRef } from "../../journal/entry.ts";
import { type ActionInput, perform } from "../../journal/perform.ts";
import { containerGarbage, type GarbagePolicy, sandboxGarbage } from "../actions/garbage.ts";
import { shortId } from "../actions/sandbox-actions.ts";
import type { Effects } from "../effects.ts";
import type { ContainerStatus, PodStatus, SandboxStatus } from "../status/pod-status.ts";
import type { ContainerRemoval } from "./container-removal.ts";
import { ignoreNotFound } from "./ignore-not-found.ts";

const containerCause: Cause = { code: "ContainerGC", message: "older dead instances of a container are removed" };
const sandboxCause: Cause = { code: "SandboxGC", message: "the pod has a newer sandbox, and this one is empty" };

/** The parts of pods that are gone. */
export interface PartsRemoved {
  readonly containers: readonly ContainerId[];
  readonly sandboxes: readonly SandboxId[];
  /** `container web #1 of default/shop: the message`. */
  readonly failures: readonly string[];
}

type CollectorEffects = Pick<Effects, "clock" | "cri" | "journal" | "log">;

/** Removes dead containers and sandboxes of pods that keep running. */
export class GarbageCollector {
  readonly #effects: CollectorEffects;
  readonly #removal: ContainerRemoval;

  constructor(effects: CollectorEffects, removal: ContainerRemoval) {
    this.#effects = effects;
    this.#removal = removal;
  }

  /**
   * Removes a pod's dead containers and sandboxes; returns whether there were any. A failure blocks nothing: the next
   * sync retries. Rejects only with the signal's reason.
   */
  async collect(pod: PodRef, status: PodStatus, policy: GarbagePolicy, signal: AbortSignal): Promise<boolean> {
    const containers = containerGarbage(status, policy, this.#effects.clock.now());
    const sandboxes = sandboxGarbage(status);
    for (const [parts, cause] of [
      [{ containers, sandboxes: [] }, containerCause],
      [{ containers: [], sandboxes }, sandboxCause],
    ] as const) {
      await this.removeParts(pod, parts, cause, signal);
    }
    return containers.length + sandboxes.length > 0;
  }

  /**
   * Removes unused parts of a pod; failures are logged. Rejects only with the signal's reason.
   */
  async removeParts(
    pod: PodRef,
    {
      containers,
      sandboxes,
    }: { readonly containers: readonly ContainerStatus[]; readonly sandboxes: readonly SandboxStatus[] },
    cause: Cause,
    signal: AbortSignal,
  ): Promise<PartsRemoved> {
    const { log } = this.#effects;
    const failures: string[] = [];
    const succeeds = async (what: string, work: Promise<void>): Promise<boolean> => {
      try {
        await work;
        return true;
      } catch (error) {
        signal.throwIfAborted();
        failures.push(`${what} of ${pod.namespace}/${pod.name}: ${errorMessage(error)}`);
        log.warn("cannot remove dead containers or sandboxes of a pod", { ...pod, error: errorMessage(error) });
        return false;
      }
    };
    const removed = { containers: [] as ContainerId[], sandboxes: [] as SandboxId[] };
    for (const container of containers) {
      const { id, name, restartCount } = container;
      const work = this.#removal.removeDead(pod, container, cause, signal);
      if (await succeeds(`container ${name} #${restartCount}`, work)) removed.containers.push(id);
    }
    for (const sandbox of sandboxes) {
      const work = this.#removeSandbox(pod, sandbox, cause, signal);
      if (await succeeds(`sandbox #${sandbox.attempt}`, work)) removed.sandboxes.push(sandbox.id);
    }
    return { ...removed, failures };
  }

  /** Stopped before it is removed: a sandbox that died by itself holds its network until then. */
  async #removeSandbox(pod: PodRef, { id }: SandboxStatus, cause: Cause, signal: AbortSignal): Promise<void> {
    const { clock, cri, journal } = this.#effects;
    const message = `remove sandbox ${shortId(id)}`;
    const action: ActionInput = { what: "RemovePodSandbox", message, pod, cause, data: { id } };
    await perform(journal, clock, action, async () => {
      await ignoreNotFound(cri.runtime.stopPodSandbox({ podSandboxId: id }, { signal }));
      await ignoreNotFound(cri.runtime.removePodSandbox({ podSandboxId: id }, { signal }));
    });
  }
}
