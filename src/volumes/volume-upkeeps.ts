import type { Volume } from "../api/volume.ts";
import { errorMessage } from "../base/errors.ts";
import type { PodUid } from "../base/ids.ts";
import { TransientMap } from "../base/transient-map.ts";
import type { Logger } from "../ports/log.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { SetUpCanceled } from "./pod-set-up.ts";
import type { StorageWaits } from "./storage-waits.ts";
import type { VolumeUpkeep } from "./volume-plugin.ts";
import type { KeptPod, VolumeSetUp } from "./volume-set-up.ts";
import { driverOf } from "./volume-spec.ts";

interface Running {
  readonly kept: KeptPod;
  readonly volume: Volume;
  readonly ended: Promise<void>;
}

/** Upkeep of a pod's volumes in progress. */
interface PodUpkeep {
  readonly controller: AbortController;
  /** By volume and kind. */
  readonly running: Map<string, Running>;
}

export interface UpkeepDependencies {
  readonly log: Logger;
  readonly waits: Pick<StorageWaits, "begin">;
}

/**
 * Runs the upkeep of running pods' external volumes, in parallel to the pods' steps: a driver that does not respond
 * delays only its own volume.
 */
export class VolumeUpkeeps {
  readonly #log: Logger;
  readonly #waits: UpkeepDependencies["waits"];
  readonly #setUp: Pick<VolumeSetUp, "upkeepsOf" | "keepUp">;
  readonly #pods = new TransientMap<PodUid, PodUpkeep>();
  #isCanceled = false;

  constructor({ log, waits }: UpkeepDependencies, setUp: Pick<VolumeSetUp, "upkeepsOf" | "keepUp">) {
    this.#log = log;
    this.#waits = waits;
    this.#setUp = setUp;
  }

  /**
   * Starts upkeep that is due, unless all of it is canceled; returns at once.
   * @param volumes the external ones
   */
  begin(kept: KeptPod, volumes: readonly Volume[]): void {
    if (this.#isCanceled) return;
    for (const volume of volumes) {
      const upkeeps = kept.memory.upkeeps.get(volume.name);
      if (upkeeps === undefined) {
        this.#begin(kept, volume, "", async (signal) => {
          this.#beginDue(kept, volume, await this.#setUp.upkeepsOf(kept, volume, signal));
        });
      } else this.#beginDue(kept, volume, upkeeps);
    }
  }

  /**
   * Ends the upkeep of the pod's volumes before they are removed. Resolves when it has ended: what waits ends at once, a
   * driver's call comes to its end first.
   */
  async stop(uid: PodUid): Promise<void> {
    const own = this.#pods.get(uid);
    if (own === undefined) return;
    own.controller.abort(new SetUpCanceled("the pod's volumes are being removed"));
    await Promise.all([...own.running.values()].map((one) => this.#ended(one)));
  }

  async #ended({ kept: { pod, memory }, volume, ended }: Running): Promise<void> {
    const spec = memory.specs.get(volume.name);
    if (spec === undefined) return await ended;
    const work = {
      pod: podRef(pod),
      volume: spec.name,
      driver: driverOf(spec, "volume"),
      operation: "keep up",
    } as const;
    const end = this.#waits.begin(work);
    await ended;
    end(true);
  }

  /** Cancels all upkeep: from now on none begins. */
  cancel(reason: SetUpCanceled): void {
    this.#isCanceled = true;
    for (const { controller } of this.#pods.values()) controller.abort(reason);
  }

  /** Resolves when all upkeep, which was canceled, has ended. */
  async close(): Promise<void> {
    await Promise.all(this.#pods.keys().map((uid) => this.stop(uid)));
  }

  #beginDue(kept: KeptPod, volume: Volume, upkeeps: readonly VolumeUpkeep[]): void {
    for (const upkeep of upkeeps) {
      if (!upkeep.isDue()) continue;
      this.#begin(kept, volume, upkeep.name, (signal) => this.#setUp.keepUp(kept, volume, upkeep, signal));
    }
  }

  /** @param kind one of each at a time, for each volume */
  #begin(kept: KeptPod, volume: Volume, kind: string, work: (signal: AbortSignal) => Promise<void>): void {
    const { uid } = kept.pod.metadata;
    const own = this.#pods.get(uid) ?? { controller: new AbortController(), running: new Map<string, Running>() };
    const key = `${volume.name} ${kind}`;
    if (own.running.has(key)) return;
    this.#pods.set(uid, own);
    const ended = this.#run(kept, volume, own.controller.signal, work).finally(() => {
      own.running.delete(key);
      if (own.running.size === 0) this.#pods.delete(uid);
    });
    own.running.set(key, { kept, volume, ended });
  }

  async #run(
    kept: KeptPod,
    volume: Volume,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    try {
      await work(signal);
    } catch (error) {
      if (signal.aborted) return;
      // The volume stays as it is, and the next sync retries.
      const about = { ...podRef(kept.pod), volume: volume.name, error: errorMessage(error) };
      this.#log.warn("cannot republish or expand a volume", about);
    }
  }
}
