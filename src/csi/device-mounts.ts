import { errorMessage } from "../base/errors.ts";
import { invariant } from "../base/invariant.ts";
import { Turns } from "../base/turns.ts";
import type { Cause, Recorder } from "../journal/entry.ts";
import { perform } from "../journal/perform.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import { AwaitedError } from "../volumes/awaited-error.ts";
import type { StorageWaits } from "../volumes/storage-waits.ts";
import { isFinal } from "./call-error.ts";
import type { DriverStore } from "./driver-store.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import { type CsiNames, uniqueVolumeName } from "./names.ts";
import { untilDone } from "./patience.ts";

/** A volume that a driver stages on the node before it is published to pods. */
export interface StageableVolume {
  readonly driver: string;
  readonly handle: string;
  /** The PV's name. */
  readonly name: string;
  readonly mode: "Filesystem" | "Block";
  /** Where the driver stages it. */
  readonly stagingPath: string;
  /** The SELinux label that it is mounted with; undefined: none. */
  readonly seLinuxLabel?: string | undefined;
}

/** What is left of a volume's files and directories on disk after their removal. */
export type Remains = "nothing" | "mounts" | "content";

/** The staged volume's files on disk. */
export interface StagedFiles {
  /** Before the driver's call. @param stagesHere the driver stages it at the volume's own path */
  save(volume: StageableVolume, stagesHere: boolean): Promise<void>;
  /** After it was unstaged. */
  remove(volume: StageableVolume): Promise<Remains>;
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
  /** Undefined before the kubelet is built: nothing is unstaged then. */
  readonly waits: () => Pick<StorageWaits, "begin" | "attempts"> | undefined;
}

/**
 * absent: nothing is staged. uncertain: a call's outcome is unknown, or an earlier run left it. staged: a call of this
 * run confirmed it.
 */
type StagingState = "absent" | "uncertain" | "staged";

/** A PersistentVolume's files of a staged volume. */
interface StagedRecord {
  readonly volume: StageableVolume;
  readonly files: StagedFiles;
  /** The driver stages it at this volume's path. */
  readonly stagesHere: boolean;
}

interface Staging {
  /** The one that came first: the specification allows a volume one staging path. */
  volume: StageableVolume;
  /**
   * One for each staging path. Several PersistentVolumes may lead to one volume of a driver, each with files of its own.
   * Usually there is one, as of holders: of hundreds of volumes, Maps and Sets would be a share of the node's memory.
   */
  records: readonly StagedRecord[];
  /** Pods' volumes that are, or may be, published from it: `<uid>/<name>`. */
  holders: readonly string[];
  state: StagingState;
  /** The task that unstages it. */
  unstaging: Promise<void> | undefined;
}

/** The holder of a staged volume in {@link UsedVolumes}. */
const holderOfStaged = "staged";
/** Holds a volume found on disk until starting pods have had time to claim it. */
const holderOfFound = "found on the disk";
const none: ReadonlySet<string> = new Set();
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
  /** By {@link listHolder}: holder and unique name. */
  readonly #listed = new Set<string>();
  #signal: AbortSignal | undefined;
  /** Staging paths of volumes that something on disk may be published from. */
  #kept: ReadonlySet<string> = new Set();

  constructor(deps: DeviceMountsDependencies) {
    this.#deps = deps;
  }

  /** Volumes that are or may be staged. */
  get volumes(): readonly (StageableVolume & { readonly state: StagingState; readonly pods: number })[] {
    return [...this.#stagings.values()].map(({ volume, state, holders }) => {
      return { ...volume, state, pods: holders.length };
    });
  }

  /** Unstages until the signal aborts, starting with volumes without holders. */
  start(signal: AbortSignal): void {
    this.#signal = signal;
    for (const staging of this.#stagings.values()) this.#unstageIfUnheld(staging);
  }

  /**
   * A volume found on disk: the next call shows whether it is staged.
   * @param stagesHere its own staging path is there
   */
  found(volume: StageableVolume, files: StagedFiles, stagesHere = true): void {
    const unique = uniqueVolumeName(volume.driver, volume.handle);
    const staging = this.#stagingOf(unique, volume);
    keepRecord(staging, { volume, files, stagesHere });
    if (staging.state === "absent") staging.state = "uncertain";
    addHolder(staging, holderOfFound);
    this.#deps.inUse()?.use(unique, holderOfStaged);
  }

  /** A pod of an earlier run has it, staged or not, until the pod has released its volumes. */
  listInUse(driver: string, handle: string, uid: string): void {
    this.#deps.inUse()?.use(uniqueVolumeName(driver, handle), uid);
  }

  /** None of the pod's volumes has it any more. */
  unlist(driver: string, handle: string, uid: string): void {
    this.#deps.inUse()?.release(uniqueVolumeName(driver, handle), uid);
  }

  /** A pod's volume that an earlier run left has it, staged or not, until that is unpublished. */
  listHolder(driver: string, handle: string, holder: string): void {
    const unique = uniqueVolumeName(driver, handle);
    this.#listed.add(`${holder} ${unique}`);
    this.#deps.inUse()?.use(unique, holder);
  }

  /** A pod's volume on disk is, or may be, published from it. */
  hold(driver: string, handle: string, holder: string): void {
    const staging = this.#stagings.get(uniqueVolumeName(driver, handle));
    if (staging !== undefined) addHolder(staging, holder);
  }

  /** Where a volume is or may be staged; undefined: it is not. */
  stagingPath(driver: string, handle: string): string | undefined {
    return this.#stagings.get(uniqueVolumeName(driver, handle))?.volume.stagingPath;
  }

  /**
   * Stages the volume unless it is staged; from now on the holder keeps it staged. Rejects with the call's error, or
   * the signal's reason.
   * @param call with the path to stage it at, which may be that of another PersistentVolume
   */
  async stage(
    volume: StageableVolume,
    files: StagedFiles,
    holder: string,
    signal: AbortSignal,
    call: (stagingPath: string) => Promise<void>,
  ): Promise<void> {
    const name = uniqueVolumeName(volume.driver, volume.handle);
    const staging = this.#stagingOf(name, volume);
    const isHeld = staging.holders.includes(holder);
    addHolder(staging, holder);
    this.#deps.inUse()?.use(name, holderOfStaged);
    using _turn = await this.#turns.take(name, signal);
    if (staging.records.length === 0) staging.volume = volume;
    if (staging.volume.mode !== volume.mode) {
      // Its pod waits until the others have released the volume.
      this.release(volume.driver, volume.handle, holder);
      throw otherMode(staging.volume, volume);
    }
    if (!isHeld && staging.volume.seLinuxLabel !== volume.seLinuxLabel) {
      this.release(volume.driver, volume.handle, holder);
      throw otherLabel(volume, staging.unstaging);
    }
    const { stagingPath } = staging.volume;
    const before = staging.state;
    const isNew = staging.records.every((each) => each.volume.stagingPath !== volume.stagingPath);
    if (before === "staged" && !isNew) return;
    const record = { volume, files, stagesHere: volume.stagingPath === stagingPath };
    // The driver's error is reported, whatever happens to the directories.
    const discard = async (): Promise<void> => {
      const remains = await files.remove(volume).catch(() => undefined);
      const isMounted = remains === "mounts";
      // What is still mounted there was staged after all, as by an earlier run whose data file is lost.
      if (before === "absent") staging.state = isMounted ? "uncertain" : "absent";
      if (!isMounted) dropRecord(staging, volume.stagingPath);
    };
    keepRecord(staging, record);
    try {
      await files.save(volume, record.stagesHere);
    } catch (error) {
      // Otherwise its directories would be orphaned.
      if (before === "absent" || !record.stagesHere) await discard();
      throw error;
    }
    if (before === "staged") return;
    staging.state = "uncertain";
    try {
      await call(stagingPath);
      staging.state = "staged";
    } catch (error) {
      if (isFinal(error) && (before === "absent" || (isNew && !record.stagesHere))) await discard();
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
    const unique = uniqueVolumeName(driver, handle);
    if (this.#listed.delete(`${holder} ${unique}`)) this.#deps.inUse()?.release(unique, holder);
    const staging = this.#stagings.get(unique);
    if (staging !== undefined && dropHolder(staging, holder)) this.#released(staging);
  }

  /** The pod has released its resources. @param kept holders that may be published still */
  releasePod(uid: string, kept: ReadonlySet<string> = none): void {
    for (const staging of this.#stagings.values()) {
      const others = staging.holders.filter((holder) => !holder.startsWith(`${uid}/`) || kept.has(holder));
      if (others.length === staging.holders.length) continue;
      staging.holders = others;
      this.#released(staging);
    }
  }

  /** Keeps volumes found on disk staged, by their staging paths, because they may be published unseen. */
  keepFound(stagingPaths: ReadonlySet<string>): void {
    this.#kept = stagingPaths;
  }

  /** Starting pods have had time to claim volumes found on disk. */
  tidy(): void {
    for (const staging of this.#stagings.values()) {
      if (this.#kept.has(staging.volume.stagingPath)) continue;
      if (dropHolder(staging, holderOfFound)) this.#unstageIfUnheld(staging);
    }
  }

  /** Resolves when no task is running. */
  async ended(): Promise<void> {
    await Promise.all([...this.#stagings.values()].flatMap(({ unstaging = [] }) => unstaging));
  }

  #stagingOf(name: string, volume: StageableVolume): Staging {
    const known = this.#stagings.get(name);
    if (known !== undefined) return known;
    const staging: Staging = { volume, records: [], holders: [], state: "absent", unstaging: undefined };
    this.#stagings.set(name, staging);
    return staging;
  }

  #released(staging: Staging): void {
    // Its last pod is gone, so no other can claim it.
    const isKept = this.#kept.has(staging.volume.stagingPath);
    if (staging.holders.length === 1 && !isKept) dropHolder(staging, holderOfFound);
    this.#unstageIfUnheld(staging);
  }

  #unstageIfUnheld(staging: Staging): void {
    const signal = this.#signal;
    if (signal === undefined || signal.aborted || staging.holders.length > 0 || staging.unstaging !== undefined) return;
    staging.unstaging = this.#unstage(staging, signal)
      .catch((error: unknown) => {
        if (!signal.aborted) throw error;
      })
      .finally(() => {
        staging.unstaging = undefined;
        // It was staged and unstaged during the last call. One that took its place is another's.
        const { driver, handle } = staging.volume;
        if (this.#stagings.get(uniqueVolumeName(driver, handle)) === staging) this.#unstageIfUnheld(staging);
      });
  }

  async #unstage(staging: Staging, signal: AbortSignal): Promise<void> {
    const { clock, log, drivers, inUse } = this.#deps;
    const { driver, handle, name } = staging.volume;
    const unique = uniqueVolumeName(driver, handle);
    const work = { volume: name, driver, operation: "unstage" } as const;
    await untilDone(clock, `volume ${name} to be unstaged`, signal, async () => {
      using _turn = await this.#turns.take(unique, signal);
      const end = this.#deps.waits()?.begin(work);
      try {
        if (staging.holders.length === 0 && staging.state !== "absent") await this.#unstageNow(staging, signal);
        end?.(true);
        // A pod uses it again, or waits to stage it again.
        if (staging.holders.length > 0) return undefined;
        this.#stagings.delete(unique);
        inUse()?.release(unique, holderOfStaged);
        return undefined;
      } catch (error) {
        signal.throwIfAborted();
        this.#deps
          .waits()
          ?.attempts(work)
          .failed(`cannot be unstaged: ${errorMessage(error)}`, error);
        log.warn("cannot unstage a volume", { volume: name, driver, error: errorMessage(error) });
        return { error, until: drivers.has(driver) ? undefined : drivers.registered(driver) };
      }
    });
  }

  async #unstageNow(staging: Staging, signal: AbortSignal): Promise<void> {
    const { clock, journal, drivers, names } = this.#deps;
    const { volume, holders, records } = staging;
    const { driver, handle, name, mode } = volume;
    const client = drivers.get(driver);
    invariant("a volume is unstaged when no pod uses it", holders.length === 0, () => `${name}: ${holders.join(" ")}`);
    staging.state = "uncertain";
    const paths = records.filter(({ stagesHere }) => stagesHere).map((each) => each.volume.stagingPath);
    if (await client.supports("stageUnstage", { signal })) {
      const message = `unstage volume ${name}`;
      const action = { what: "UnstageVolume", message, cause: nobodyHoldsIt, data: { volume: name, driver } } as const;
      for (const path of paths) {
        await perform(journal, clock, action, () =>
          client.unstage(handle, names.toldToDrivers(path), { signal, mode }),
        );
      }
    }
    await this.#removeFiles(staging);
    staging.state = "absent";
  }

  /** @throws Error while something is mounted: the volume must not be detached */
  async #removeFiles(staging: Staging): Promise<void> {
    for (const { volume, files } of staging.records) {
      const path = volume.stagingPath;
      const remains = await files.remove(volume);
      if (remains === "mounts") throw new Error(`something is still mounted at ${path} after NodeUnstageVolume`);
      // It is on the node's own disk, not on the volume.
      const { name } = volume;
      if (remains === "content") this.#deps.log.warn("staging directory is not empty", { volume: name, path });
      else dropRecord(staging, path);
    }
  }
}

function otherMode(staged: StageableVolume, { driver, handle, mode }: StageableVolume): VolumeError {
  const [is, cannot] = mode === "Block" ? ["a file system", "a device"] : ["a device", "a file system"];
  return new VolumeError(
    `volume ${handle} of driver ${driver} is in use on this node as ${is} (PersistentVolume ${staged.name}): ` +
      `it cannot be ${cannot} at the same time`,
  );
}

/** In upstream's words. @param until it is unstaged; undefined: pods use it still */
function otherLabel({ driver, handle }: StageableVolume, until: Promise<void> | undefined): VolumeError {
  const message =
    `waiting for unmount of volume "${uniqueVolumeName(driver, handle)}", ` +
    "because it is already mounted to a different pod with a different SELinux label";
  return until === undefined ? new VolumeError(message) : new AwaitedError(message, until);
}

function addHolder(staging: Staging, holder: string): void {
  if (!staging.holders.includes(holder)) staging.holders = [...staging.holders, holder];
}

/** Whether it was one. */
function dropHolder(staging: Staging, holder: string): boolean {
  const before = staging.holders;
  staging.holders = before.filter((each) => each !== holder);
  return staging.holders.length < before.length;
}

/** In the place of an earlier one for the same path. */
function keepRecord(staging: Staging, record: StagedRecord): void {
  dropRecord(staging, record.volume.stagingPath);
  staging.records = [...staging.records, record];
}

function dropRecord(staging: Staging, stagingPath: string): void {
  staging.records = staging.records.filter((each) => each.volume.stagingPath !== stagingPath);
}
