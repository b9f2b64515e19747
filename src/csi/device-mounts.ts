import { errorMessage } from "../base/errors.ts";
import { invariant } from "../base/invariant.ts";
import { Semaphore } from "../base/semaphore.ts";
import type { Cause, Recorder } from "../journal/entry.ts";
import { perform } from "../journal/perform.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import { isFinal } from "./call-error.ts";
import type { DriverStore } from "./driver-store.ts";
import { uniqueVolumeName } from "./names.ts";
import { untilDone } from "./patience.ts";

/** A volume of which a driver makes something ready for the whole node, before pods get it. */
export interface StageableVolume {
  readonly driver: string;
  readonly handle: string;
  /** For people: the PV's name. */
  readonly name: string;
  /** What the driver stages on. */
  readonly stagingPath: string;
}

/** The volume as it lies on the disk. */
export interface StagedFiles {
  /** Before the driver is called. */
  save(volume: StageableVolume): Promise<void>;
  /** After it has been taken back; false: something is mounted there still. */
  remove(volume: StageableVolume): Promise<boolean>;
}

/** Says on the Node that volumes are in use: they must not be detached. */
export interface UsedVolumes {
  use(volumeName: string, user: string): void;
  release(volumeName: string, user: string): void;
}

export interface DeviceMountsDependencies {
  readonly clock: Clock;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly drivers: DriverStore;
  /** Undefined without a cluster: nobody would detach them. */
  readonly inUse: () => UsedVolumes | undefined;
}

/**
 * absent: nothing is staged, for sure. uncertain: a call's outcome is unknown, or an earlier life left it. staged: a call of this life
 * has confirmed it.
 */
type StagingState = "absent" | "uncertain" | "staged";

interface Staging {
  readonly volume: StageableVolume;
  readonly files: StagedFiles;
  /** Calls about one volume come one after the other. */
  readonly turn: Semaphore;
  /** Pods' volumes that are, or may be, published from it: `<uid>/<name>`. */
  readonly holders: Set<string>;
  state: StagingState;
  /** The task that takes it back. */
  unstaging: Promise<void> | undefined;
}

/** Who holds what is staged while it is. */
const holderOfStaged = "staged";
/** Holds what lies on the disk until pods that start may have taken it up. */
const holderOfFound = "found on the disk";
const nobodyHoldsIt: Cause = { code: "NoPodUsesVolume", message: "no pod on this node uses the volume any more" };

/**
 * What is staged of volumes, once a node, with the volumes of pods that use it (upstream's device mounts). Staged with the first,
 * taken back after the last; a stage whose outcome is unknown is taken back as one that succeeded.
 */
export class DeviceMounts {
  readonly #deps: DeviceMountsDependencies;
  readonly #stagings = new Map<string, Staging>();
  #signal: AbortSignal | undefined;

  constructor(deps: DeviceMountsDependencies) {
    this.#deps = deps;
  }

  /** Of volumes that are staged, or may be. */
  get volumes(): readonly (StageableVolume & { readonly state: StagingState; readonly pods: number })[] {
    return [...this.#stagings.values()].map(({ volume, state, holders }) => {
      return { ...volume, state, pods: holders.size };
    });
  }

  /** Takes back until the signal aborts; what nobody holds by now is begun with. */
  start(signal: AbortSignal): void {
    this.#signal = signal;
    for (const staging of this.#stagings.values()) this.#unstageIfUnheld(staging);
  }

  /** Found on the disk: whether it is staged shows the next call. */
  found(volume: StageableVolume, files: StagedFiles): void {
    const staging = this.#stagingOf(volume, files);
    if (staging.state === "absent") staging.state = "uncertain";
    staging.holders.add(holderOfFound);
    this.#deps.inUse()?.use(uniqueVolumeName(volume.driver, volume.handle), holderOfStaged);
  }

  /** A pod's volume lies on the disk that is, or may be, published from it. */
  hold(driver: string, handle: string, holder: string): void {
    this.#stagings.get(uniqueVolumeName(driver, handle))?.holders.add(holder);
  }

  /**
   * Stages the volume unless it is staged already; from now on the holder keeps it so. Rejects with the call's error, or the signal's
   * reason.
   */
  async stage(
    volume: StageableVolume,
    files: StagedFiles,
    holder: string,
    signal: AbortSignal,
    call: () => Promise<void>,
  ): Promise<void> {
    const name = uniqueVolumeName(volume.driver, volume.handle);
    const staging = this.#stagingOf(volume, files);
    staging.holders.add(holder);
    this.#deps.inUse()?.use(name, holderOfStaged);
    using _turn = await staging.turn.acquire(signal);
    if (staging.state === "staged") return;
    const before = staging.state;
    try {
      await files.save(volume);
    } catch (error) {
      // What it made of the directories would be nobody's.
      if (before === "absent") await files.remove(volume).catch(() => false);
      throw error;
    }
    staging.state = "uncertain";
    try {
      await call();
      staging.state = "staged";
    } catch (error) {
      if (isFinal(error) && before === "absent") {
        // What the driver said counts, not what became of the directories.
        await files.remove(volume).catch(() => false);
        staging.state = "absent";
      }
      throw error;
    }
  }

  /** The holder's volume is unpublished for sure: after the last one the volume is taken back, beside everything else. */
  release(driver: string, handle: string, holder: string): void {
    const staging = this.#stagings.get(uniqueVolumeName(driver, handle));
    if (staging?.holders.delete(holder) === true) this.#released(staging);
  }

  /** The pod holds nothing any more. */
  releasePod(uid: string): void {
    for (const staging of this.#stagings.values()) {
      const own = [...staging.holders].filter((holder) => holder.startsWith(`${uid}/`));
      for (const holder of own) staging.holders.delete(holder);
      if (own.length > 0) this.#released(staging);
    }
  }

  /** Pods that want what lies on the disk have had time to take it up. */
  tidy(): void {
    for (const staging of this.#stagings.values()) {
      if (staging.holders.delete(holderOfFound)) this.#unstageIfUnheld(staging);
    }
  }

  /** Resolves when no task is under way any more. */
  async ended(): Promise<void> {
    await Promise.all([...this.#stagings.values()].flatMap(({ unstaging = [] }) => unstaging));
  }

  #stagingOf(volume: StageableVolume, files: StagedFiles): Staging {
    const name = uniqueVolumeName(volume.driver, volume.handle);
    const known = this.#stagings.get(name);
    if (known !== undefined) return known;
    const staging: Staging = {
      volume,
      files,
      turn: new Semaphore(1),
      holders: new Set(),
      state: "absent",
      unstaging: undefined,
    };
    this.#stagings.set(name, staging);
    return staging;
  }

  #released(staging: Staging): void {
    // Its last pod is gone: who else could want it?
    if (staging.holders.size === 1) staging.holders.delete(holderOfFound);
    this.#unstageIfUnheld(staging);
  }

  #unstageIfUnheld(staging: Staging): void {
    const signal = this.#signal;
    if (signal === undefined || signal.aborted || staging.holders.size > 0 || staging.unstaging !== undefined) return;
    staging.unstaging = this.#unstage(staging, signal)
      .catch((error: unknown) => {
        if (!signal.aborted) throw error;
      })
      .finally(() => {
        staging.unstaging = undefined;
        // Somebody came and went while the last call was under way.
        if (this.#stagings.has(uniqueVolumeName(staging.volume.driver, staging.volume.handle))) {
          this.#unstageIfUnheld(staging);
        }
      });
  }

  async #unstage(staging: Staging, signal: AbortSignal): Promise<void> {
    const { clock, log, drivers, inUse } = this.#deps;
    const { driver, handle, name } = staging.volume;
    await untilDone(clock, `volume ${name} to be unstaged`, signal, async () => {
      using _turn = await staging.turn.acquire(signal);
      if (staging.holders.size > 0) return undefined;
      try {
        if (staging.state !== "absent") await this.#unstageNow(staging, signal);
        // Somebody waits for his turn to stage it again.
        if (staging.holders.size > 0) return undefined;
        const unique = uniqueVolumeName(driver, handle);
        this.#stagings.delete(unique);
        inUse()?.release(unique, holderOfStaged);
        return undefined;
      } catch (error) {
        signal.throwIfAborted();
        log.warn("cannot unstage a volume", { volume: name, driver, error: errorMessage(error) });
        return { error, until: drivers.has(driver) ? undefined : drivers.registered(driver) };
      }
    });
  }

  async #unstageNow(staging: Staging, signal: AbortSignal): Promise<void> {
    const { clock, journal, drivers } = this.#deps;
    const { volume, holders, files } = staging;
    const { driver, handle, name, stagingPath } = volume;
    const client = drivers.get(driver);
    invariant(
      "a volume is unstaged when no pod uses it",
      holders.size === 0,
      () => `${name}: ${[...holders].join(" ")}`,
    );
    staging.state = "uncertain";
    if (await client.supports("stageUnstage", { signal })) {
      const message = `unstage volume ${name}`;
      const action = { what: "UnstageVolume", message, cause: nobodyHoldsIt, data: { volume: name, driver } } as const;
      await perform(journal, clock, action, () => client.unstage(handle, stagingPath, { signal }));
    }
    if (!(await files.remove(volume))) {
      this.#deps.log.warn("something is still mounted where an unstaged volume was", { volume: name, stagingPath });
    }
    staging.state = "absent";
  }
}
