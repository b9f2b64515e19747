import type { Volume } from "../api/volume.ts";
import { errorMessage } from "../base/errors.ts";
import type { PodUid } from "../base/ids.ts";
import type { Logger } from "../ports/log.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { isExternal, type KeptPod, type VolumeSetUp } from "./volume-set-up.ts";

interface Upkeep {
  readonly controller: AbortController;
  readonly ended: Promise<void>;
}

/**
 * Looks after the volumes of running pods that lead to something outside, beside the pods' steps: a driver that does not
 * answer holds up nothing but its own volume.
 */
export class VolumeUpkeeps {
  readonly #log: Logger;
  readonly #setUp: Pick<VolumeSetUp, "keepUp">;
  /** By pod and volume: what is under way. */
  readonly #running = new Map<PodUid, Map<string, Upkeep>>();

  constructor(log: Logger, setUp: Pick<VolumeSetUp, "keepUp">) {
    this.#log = log;
    this.#setUp = setUp;
  }

  /** Begins what is due; returns at once. */
  begin(kept: KeptPod, volumes: readonly Volume[]): void {
    for (const volume of volumes) if (isExternal(volume)) this.#begin(kept, volume);
  }

  /** The pod's volumes are about to go: calls off what is under way. Resolves when it has ended. */
  async stop(uid: PodUid): Promise<void> {
    const running = [...(this.#running.get(uid)?.values() ?? [])];
    for (const { controller } of running) controller.abort(new Error("the pod's volumes are removed"));
    await Promise.all(running.map(({ ended }) => ended));
  }

  #begin(kept: KeptPod, volume: Volume): void {
    const { uid } = kept.pod.metadata;
    const running = this.#running.get(uid) ?? new Map<string, Upkeep>();
    if (running.has(volume.name)) return;
    this.#running.set(uid, running);
    const controller = new AbortController();
    const ended = this.#run(kept, volume, controller.signal).finally(() => {
      running.delete(volume.name);
      if (running.size === 0) this.#running.delete(uid);
    });
    running.set(volume.name, { controller, ended });
  }

  async #run(kept: KeptPod, volume: Volume, signal: AbortSignal): Promise<void> {
    try {
      await this.#setUp.keepUp(kept, volume, signal);
    } catch (error) {
      if (signal.aborted) return;
      // The pod keeps what it has, and the next sync looks again.
      const about = { ...podRef(kept.pod), volume: volume.name, error: errorMessage(error) };
      this.#log.warn("cannot look after a volume", about);
    }
  }
}
