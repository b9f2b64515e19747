import { errorMessage } from "../base/errors.ts";
import { invariant } from "../base/invariant.ts";
import { Turns } from "../base/turns.ts";
import type { Cause, Recorder } from "../journal/entry.ts";
import { perform } from "../journal/perform.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import { isFinal } from "./call-error.ts";
import type { DriverStore } from "./driver-store.ts";
import { type CsiNames, uniqueVolumeName } from "./names.ts";
import { untilDone } from "./patience.ts";

/** A volume that a driver stages on the node before it is published to pods. */
export interface StageableVolume {
  readonly driver: string;
  readonly handle: string;
  /** The PV's name, for messages. */
  readonly name: string;
  /** Where the driver stages it. */
  readonly stagingPath: string;
}

/** The staged volume's files on disk. */
export interface StagedFiles {
  /** Before the driver's call. */
  save(volume: StageableVolume): Promise<void>;
  /** After it was unstaged; false: something is still mounted there. */
  remove(volume: StageableVolume): Promise<boolean>;
}

/** Lists volumes in use on the Node: they must not be detached. */
export interface UsedVolumes {
  use(volumeName: string, user: string): void;
  release(volumeName: string, user: string): void;
}

export interface DeviceMountsDependencies {
  readonly clock: Clock;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly drivers: DriverStore;
  readonly names: Pick<CsiNames, "toldToDrivers">;
  /** Undefined without a cluster: nothing would detach them. */
  readonly inUse: () => UsedVolumes | undefined;
}

/**
 * absent: nothing is staged. uncertain: a call's outcome is unknown, or an earlier run left it. staged: a call of this
 * run confirmed it.
 */
type StagingState = "absent" | "uncertain" | "staged";

interface Staging {
  readonly volume: StageableVolume;
  readonly files: StagedFiles;
  /** Pods' volumes that are, or may be, published from it: `<uid>/<name>`. */
  readonly holders: Set<string>;
  state: StagingState;
  /** The task that unstages it. */
  unstaging: Promise<void> | undefined;
}

/** The holder of a staged volume in {@link UsedVolumes}. */
const holderOfStaged = "staged";
/** Holds a volume found on disk until starting pods have had time to claim it. */
const holderOfFound = "found on the disk";
const nobodyHoldsIt: Cause = { code: "NoPodUsesVolume", message: "no pod on this node uses the volume any more" };

/**
 * The staged volumes of the node, with the pods' volumes that use them (upstream's device mounts). Staged for the first
 * pod, unstaged after the last. A stage with an unknown outcome is unstaged too.
 */
export class DeviceMounts {
  readonly #deps: DeviceMountsDependencies;
  readonly #stagings = new Map<string, Staging>();
  /** Serialize calls for a volume, by its unique name. */
  readonly #turns = new Turns();
  #signal: AbortSignal | undefined;

  constructor(deps: DeviceMountsDependencies) {
    this.#deps = deps;
  }

  /** Volumes that are or may be staged. */
  get volumes(): readonly (StageableVolume & { readonly state: StagingState; readonly pods: number })[] {
    return [...this.#stagings.values()].map(({ volume, state, holders }) => {
      return { ...volume, state, pods: holders.size };
    });
  }

  /** Unstages until the signal aborts, starting with volumes without holders. */
  start(signal: AbortSignal): void {
    this.#signal = signal;
    for (const staging of this.#stagings.values()) this.#unstageIfUnheld(staging);
  }

  /** A volume found on disk: the next call shows whether it is staged. */
  found(volume: StageableVolume, files: StagedFiles): void {
    const unique = uniqueVolumeName(volume.driver, volume.handle);
    const staging = this.#stagingOf(unique, volume, files);
    if (staging.state === "absent") staging.state = "uncertain";
    staging.holders.add(holderOfFound);
    this.#deps.inUse()?.use(unique, holderOfStaged);
  }

  /** A pod's volume on disk is, or may be, published from it. */
  hold(driver: string, handle: string, holder: string): void {
    this.#stagings.get(uniqueVolumeName(driver, handle))?.holders.add(holder);
  }

  /**
   * Stages the volume unless it is staged; from now on the holder keeps it staged. Rejects with the call's error, or
   * the signal's reason.
   */
  async stage(
    volume: StageableVolume,
    files: StagedFiles,
    holder: string,
    signal: AbortSignal,
    call: () => Promise<void>,
  ): Promise<void> {
    const name = uniqueVolumeName(volume.driver, volume.handle);
    const staging = this.#stagingOf(name, volume, files);
    staging.holders.add(holder);
    this.#deps.inUse()?.use(name, holderOfStaged);
    using _turn = await this.#turns.take(name, signal);
    if (staging.state === "staged") return;
    const before = staging.state;
    try {
      await files.save(volume);
    } catch (error) {
      // Otherwise its directories would be orphaned.
      if (before === "absent") await files.remove(volume).catch(() => false);
      throw error;
    }
    staging.state = "uncertain";
    try {
      await call();
      staging.state = "staged";
    } catch (error) {
      if (isFinal(error) && before === "absent") {
        // The driver's error is reported, whatever happens to the directories.
        await files.remove(volume).catch(() => false);
        staging.state = "absent";
      }
      throw error;
    }
  }

  /** The volume may not be staged, whatever its calls said: the next one shows that. */
  lost(driver: string, handle: string): void {
    const staging = this.#stagings.get(uniqueVolumeName(driver, handle));
    if (staging?.state === "staged") staging.state = "uncertain";
  }

  /** The holder's volume is definitely unpublished. After the last holder the volume is unstaged in the background. */
  release(driver: string, handle: string, holder: string): void {
    const staging = this.#stagings.get(uniqueVolumeName(driver, handle));
    if (staging?.holders.delete(holder) === true) this.#released(staging);
  }

  /** The pod has released its resources. */
  releasePod(uid: string): void {
    for (const staging of this.#stagings.values()) {
      const own = [...staging.holders].filter((holder) => holder.startsWith(`${uid}/`));
      for (const holder of own) staging.holders.delete(holder);
      if (own.length > 0) this.#released(staging);
    }
  }

  /** Starting pods have had time to claim volumes found on disk. */
  tidy(): void {
    for (const staging of this.#stagings.values()) {
      if (staging.holders.delete(holderOfFound)) this.#unstageIfUnheld(staging);
    }
  }

  /** Resolves when no task is running. */
  async ended(): Promise<void> {
    await Promise.all([...this.#stagings.values()].flatMap(({ unstaging = [] }) => unstaging));
  }

  #stagingOf(name: string, volume: StageableVolume, files: StagedFiles): Staging {
    const known = this.#stagings.get(name);
    if (known !== undefined) return known;
    const staging: Staging = {
      volume,
      files,
      holders: new Set(),
      state: "absent",
      unstaging: undefined,
    };
    this.#stagings.set(name, staging);
    return staging;
  }

  #released(staging: Staging): void {
    // Its last pod is gone, so no other can claim it.
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
        // It was staged and unstaged during the last call.
        if (this.#stagings.has(uniqueVolumeName(staging.volume.driver, staging.volume.handle))) {
          this.#unstageIfUnheld(staging);
        }
      });
  }

  async #unstage(staging: Staging, signal: AbortSignal): Promise<void> {
    const { clock, log, drivers, inUse } = this.#deps;
    const { driver, handle, name } = staging.volume;
    const unique = uniqueVolumeName(driver, handle);
    await untilDone(clock, `volume ${name} to be unstaged`, signal, async () => {
      using _turn = await this.#turns.take(unique, signal);
      if (staging.holders.size > 0) return undefined;
      try {
        if (staging.state !== "absent") await this.#unstageNow(staging, signal);
        // A pod is waiting to stage it again.
        if (staging.holders.size > 0) return undefined;
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
    const { clock, journal, drivers, names } = this.#deps;
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
      const told = names.toldToDrivers(stagingPath);
      await perform(journal, clock, action, () => client.unstage(handle, told, { signal }));
    }
    if (!(await files.remove(volume))) {
      this.#deps.log.warn("staging directory is still mounted after NodeUnstageVolume", { volume: name, stagingPath });
    }
    staging.state = "absent";
  }
}
