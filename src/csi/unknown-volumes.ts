import type { Pod } from "../api/pod.ts";
import { errorMessage } from "../base/errors.ts";
import type { Recorder } from "../journal/entry.ts";
import type { StorageLookup } from "../objects/storage-lookup.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { MountPoint, Mounts } from "../ports/mounts.ts";
import type { DeviceMounts } from "./device-mounts.ts";
import type { DriverStore } from "./driver-store.ts";
import { type CsiNames, parseUniqueVolumeName, uniqueVolumeName } from "./names.ts";
import type { Publications } from "./publications.ts";
import { removeBlockFiles, StagedMountFiles } from "./staged-files.ts";
import {
  dataIn,
  holderOf,
  identityOf,
  isAnyMounted,
  takeUpBlock,
  takeUpPublished,
  takeUpPublishedBlock,
  takeUpStaged,
  type VolumeIdentity,
} from "./take-up.ts";
import { isPart, mayBeBlock, mayHoldMounts, mountedAt, pathOf, type UnknownVolume } from "./unknown-volume.ts";
import { inPlace } from "./volumes-at-start.ts";

export interface UnknownVolumesDependencies {
  readonly files: Files;
  readonly mounts: Pick<Mounts, "below">;
  readonly names: CsiNames;
  readonly devices: DeviceMounts;
  readonly publications: Publications;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly storage: () => Pick<StorageLookup, "persistentVolume"> | undefined;
  /** As desired, or as stored by an earlier run; undefined: neither is known. */
  readonly pod: (uid: string) => Promise<Pick<Pod, "spec"> | undefined>;
  /** Unique names of volumes that the Node lists as in use, or as attached. */
  readonly listed: () => readonly string[];
  readonly drivers: Pick<DriverStore, "has" | "get">;
}

/**
 * Volumes on disk that an earlier run mounted and whose data files are missing or damaged, as after a power failure.
 * Whose volume it is can be known otherwise: by the same PersistentVolume in another pod, by the mount table, by the
 * PersistentVolume itself, or by what the Node lists. Until then they count as in use, and what they may be published
 * from stays staged: a volume that is detached while it is mounted loses data.
 */
export class UnknownVolumes {
  readonly #deps: UnknownVolumesDependencies;
  #unknown: readonly UnknownVolume[] = [];
  /** Unique names of volumes that none of them is. */
  readonly #cleared = new Set<string>();
  /** Holders that were known only later: the teardown of their pods may have left them published. */
  readonly #late = new Set<string>();

  constructor(deps: UnknownVolumesDependencies) {
    this.#deps = deps;
  }

  /** Paths of those that are mounted, and of directories that may hold some. */
  get paths(): readonly string[] {
    return this.#unknown.map((volume) => this.#pathOf(volume));
  }

  /** One of them may be published from a volume, staged or not. */
  get mayBePublished(): boolean {
    return this.#unknown.some(({ kind }) => kind !== "staged");
  }

  /** The pod has released its resources. What was known only after its teardown may be published still, and stays. */
  releasePod(uid: string): void {
    const { devices, publications } = this.#deps;
    const own = publications.all().filter((each) => each.uid === uid);
    const left = own.filter(({ name }) => this.#late.has(holderOf(uid, name))).map(({ name }) => name);
    devices.releasePod(uid, new Set(left.map((name) => holderOf(uid, name))));
    publications.removePod(uid, new Set(left));
  }

  /** Whether a volume, by its unique name, is certainly none of them. */
  isCleared(unique: string): boolean {
    return this.#cleared.has(unique);
  }

  /** What they may be published from stays staged; what they are not published from is cleared. */
  async keepSources(): Promise<void> {
    const { devices } = this.#deps;
    const sources = await this.#sourcesOrAll();
    devices.keepFound(sources);
    for (const { driver, handle, stagingPath } of devices.volumes) {
      if (!sources.has(stagingPath)) this.#cleared.add(uniqueVolumeName(driver, handle));
    }
  }

  /**
   * Clears what the Node lists and an earlier run has unstaged: nothing is published from it. A driver that does not
   * stage may have published it all the same.
   */
  async clearUnstaged(signal: AbortSignal): Promise<void> {
    // Where a device is staged, its handle does not show.
    if (this.#unknown.some(mayBeBlock)) return;
    for (const unique of this.#deps.listed()) {
      const parsed = parseUniqueVolumeName(unique);
      if (parsed !== undefined && (await this.#isUnstaged(parsed, signal))) this.#cleared.add(unique);
    }
  }

  async #isUnstaged({ driver, handle }: VolumeIdentity, signal: AbortSignal): Promise<boolean> {
    const { drivers, devices, files, names, log } = this.#deps;
    if (!drivers.has(driver) || devices.stagingPath(driver, handle) !== undefined) return false;
    try {
      if (!(await drivers.get(driver).supports("stageUnstage", { signal }))) return false;
      return (await files.stat(names.staged(driver, handle))) === undefined;
    } catch (error) {
      signal.throwIfAborted();
      log.debug("cannot find out whether a volume is staged", { driver, handle, error: errorMessage(error) });
      return false;
    }
  }

  async #sourcesOrAll(): Promise<ReadonlySet<string>> {
    try {
      return await this.#sources();
    } catch (error) {
      this.#deps.log.warn("cannot read the table of mounts", { error: errorMessage(error) });
      return new Set(this.#deps.devices.volumes.map(({ stagingPath }) => stagingPath));
    }
  }

  /**
   * Staging paths of the volumes that they may be published from: those with the same file system, or one of the same
   * type, which the driver may have mounted anew.
   */
  async #sources(): Promise<ReadonlySet<string>> {
    const { mounts, devices } = this.#deps;
    const found: MountPoint[] = [];
    for (const volume of this.#unknown) {
      if (mayHoldMounts(volume)) found.push(...(await mounts.below(this.#pathOf(volume))));
    }
    const hasBlock = this.#unknown.some(mayBeBlock);
    const paths = new Set<string>();
    for (const { mode, stagingPath } of devices.volumes) {
      if (mode === "Block" ? hasBlock : await this.#mayBeSource(stagingPath, found)) paths.add(stagingPath);
    }
    return paths;
  }

  async #mayBeSource(stagingPath: string, unknown: readonly MountPoint[]): Promise<boolean> {
    if (unknown.length === 0) return false;
    const staged = await mountedAt(this.#deps.mounts, stagingPath);
    if (staged === undefined) return true;
    return unknown.some(({ device, fileSystem }) => {
      return fileSystem === staged.fileSystem || (device !== undefined && device === staged.device);
    });
  }

  /**
   * Takes up what is known meanwhile. Those without mounts do not count.
   * @param signal undefined: PersistentVolumes are not read yet
   */
  async look(found: readonly UnknownVolume[], signal: AbortSignal | undefined): Promise<void> {
    const before = this.paths;
    const left: UnknownVolume[] = [];
    // While they are looked at, what is staged may be what another one is published from.
    this.#unknown = found;
    const pending = [...found];
    for (const volume of pending) {
      if (volume.kind === "unlisted" && volume.what !== "device") {
        const within = await inPlace(this.#deps, volume).catch(() => undefined);
        if (within === undefined) left.push(volume);
        pending.push(...(within ?? []));
        this.#unknown = pending;
      } else if (!(await this.#looksSettled(volume, signal))) {
        left.push(volume);
      }
    }
    this.#unknown = left;
    for (const volume of left) if (!before.includes(this.#pathOf(volume))) this.#tell(volume);
  }

  async lookAgain(signal: AbortSignal): Promise<void> {
    await this.look(this.#unknown, signal);
  }

  /** Whose volume a pod's is, as far as the node itself knows. */
  async identify(uid: string, name: string): Promise<VolumeIdentity | undefined> {
    const { publications, names } = this.#deps;
    const own = publications.get(uid, name);
    if (own !== undefined) return own;
    const { spec } = (await this.#deps.pod(uid)) ?? {};
    const driver = spec?.volumes?.find((volume) => volume.name === name)?.csi?.driver;
    if (driver !== undefined) return { driver, handle: names.inlineHandle(uid, name) };
    return (await this.#byMount(uid, name)) ?? (await this.#byOtherPod(uid, name));
  }

  /** Another pod has the same file system from a PersistentVolume of that name. An inline volume's name says nothing. */
  async #byOtherPod(uid: string, name: string): Promise<VolumeIdentity | undefined> {
    const { publications, names, mounts } = this.#deps;
    const mount = await mountedAt(mounts, this.#targetOf(uid, name));
    if (mount === undefined) return undefined;
    for (const other of publications.all()) {
      const { driver, handle, seLinux } = other.publication;
      if (other.name !== name || handle === names.inlineHandle(other.uid, name)) continue;
      const theirs = await mountedAt(mounts, this.#targetOf(other.uid, name));
      if (theirs !== undefined && isPart(mount, theirs)) return { driver, handle, seLinux };
    }
    return undefined;
  }

  async #looksSettled(volume: UnknownVolume, signal: AbortSignal | undefined): Promise<boolean> {
    try {
      return await this.#isSettled(volume, signal);
    } catch (error) {
      signal?.throwIfAborted();
      this.#deps.log.warn("cannot look at a volume", { path: this.#pathOf(volume), error: errorMessage(error) });
      return false;
    }
  }

  async #isSettled(volume: UnknownVolume, signal: AbortSignal | undefined): Promise<boolean> {
    if (volume.kind === "unlisted") return await this.#isTakenUp(volume.name);
    if (volume.kind === "staged" && (await this.#takeUpStaged(volume))) return true;
    if (volume.kind === "block" && (await dataIn(this.#deps.files, this.#deps.names.blockData(volume.name)))) {
      return await this.#isTakenUp(volume.name);
    }
    if (!(await this.#isMounted(volume))) {
      // It is nobody's: only empty directories and the damaged file are left.
      await this.#removeLeft(volume);
      return true;
    }
    if (volume.kind === "staged") return false;
    if (volume.kind === "block") {
      const known = await this.#byObject(volume.name, signal);
      if (known === undefined) return false;
      const isWhole = await takeUpBlock(this.#deps, volume.name, known);
      this.#keepPublished(known, ({ name }) => name === volume.name);
      return isWhole;
    }
    const { uid, name } = volume;
    const data = await dataIn(this.#deps.files, this.#pathOf(volume));
    const known =
      (data && identityOf(data)) ?? (await this.identify(uid, name)) ?? (await this.#byObject(name, signal));
    if (known === undefined) return false;
    takeUpPublished(this.#deps, uid, name, known);
    this.#keepPublished(known, (each) => each.uid === uid && each.name === name);
    return true;
  }

  /** A device whose data file is legible, for all its pods; what is gone meanwhile is. */
  async #isTakenUp(name: string): Promise<boolean> {
    const { devices, files, names } = this.#deps;
    const data = await dataIn(files, names.blockData(name));
    const known = devices.volumes.find((volume) => volume.mode === "Block" && volume.name === name);
    const id = known ?? (data && identityOf(data));
    if (id === undefined) return true;
    const isStaged = devices.stagingPath(id.driver, id.handle) !== undefined;
    const isWhole = await (isStaged ? takeUpPublishedBlock : takeUpBlock)(this.#deps, name, id);
    this.#keepPublished(id, (each) => each.name === name);
    return isWhole;
  }

  /** What was known late counts as published and in use until it is unpublished, whatever its pod has released. */
  #keepPublished(
    { driver, handle }: VolumeIdentity,
    isIt: (volume: { readonly uid: string; readonly name: string }) => boolean,
  ): void {
    const { publications, devices, names } = this.#deps;
    for (const { uid, name } of publications.all().filter(isIt)) {
      const holder = holderOf(uid, name);
      this.#late.add(holder);
      if (handle !== names.inlineHandle(uid, name)) devices.listHolder(driver, handle, holder);
    }
  }

  /** Where the file system is damaged it may be impossible, which must not keep the node from starting. */
  async #removeLeft(volume: UnknownVolume): Promise<void> {
    try {
      if (volume.kind === "staged") await new StagedMountFiles(this.#deps, volume.directory).remove();
      if (volume.kind === "block") await removeBlockFiles(this.#deps, this.#deps.names, volume.name);
    } catch (error) {
      const path = this.#pathOf(volume);
      this.#deps.log.warn("cannot remove what is left of a volume", { path, error: errorMessage(error) });
    }
  }

  async #isMounted(volume: UnknownVolume): Promise<boolean> {
    const { mounts, names } = this.#deps;
    return await isAnyMounted(
      mounts,
      volume.kind === "block" ? names.blockPlaces(volume.name) : [this.#pathOf(volume)],
    );
  }

  /** The directory's name is the hash of the handle. */
  async #takeUpStaged({ driver, directory }: UnknownVolume & { readonly kind: "staged" }): Promise<boolean> {
    const { files, publications, names, listed, devices } = this.#deps;
    const prefix = uniqueVolumeName(driver, "");
    const data = await dataIn(files, directory);
    const volumes: VolumeIdentity[] = [
      ...(data?.driverName === driver ? [identityOf(data)] : []),
      ...publications.all().flatMap(({ publication }) => (publication.driver === driver ? [publication] : [])),
      ...listed().flatMap((unique) => {
        return unique.startsWith(prefix) ? [{ driver, handle: unique.slice(prefix.length) }] : [];
      }),
    ];
    const known = volumes.find((volume) => names.staged(driver, volume.handle) === directory);
    if (known === undefined) return false;
    const { handle } = known;
    if (devices.stagingPath(driver, handle) === undefined) takeUpStaged(this.#deps, directory, known);
    for (const { uid, name, publication } of publications.all()) {
      if (publication.driver === driver && publication.handle === handle) {
        devices.hold(driver, handle, holderOf(uid, name));
      }
    }
    return true;
  }

  /** A pod has a part of what is staged, or all of it. */
  async #byMount(uid: string, name: string): Promise<VolumeIdentity | undefined> {
    const { mounts } = this.#deps;
    const mount = await mountedAt(mounts, this.#targetOf(uid, name));
    if (mount === undefined) return undefined;
    let best: { readonly identity: VolumeIdentity | undefined; readonly root: string } | undefined;
    let isUnique = true;
    for (const { identity, stagingPath } of this.#stagedFileSystems()) {
      const staged = await mountedAt(mounts, stagingPath);
      if (staged === undefined || !isPart(mount, staged)) continue;
      const root = staged.root ?? "/";
      if (best !== undefined && root.length < best.root.length) continue;
      isUnique = best === undefined || root.length > best.root.length;
      best = { identity, root };
    }
    return isUnique ? best?.identity : undefined;
  }

  /** Those that are unknown, too: a pod that has a part of one has no other. */
  #stagedFileSystems(): { readonly identity: VolumeIdentity | undefined; readonly stagingPath: string }[] {
    const known = this.#deps.devices.volumes
      .filter(({ mode }) => mode === "Filesystem")
      .map(({ driver, handle, stagingPath, seLinuxLabel: label }) => {
        return { identity: { driver, handle, ...(label !== undefined && { seLinux: { label } }) }, stagingPath };
      });
    const paths = new Set(known.map(({ stagingPath }) => stagingPath));
    const unknown = this.#unknown.flatMap((volume) =>
      volume.kind === "staged" ? [{ identity: undefined, stagingPath: `${volume.directory}/globalmount` }] : [],
    );
    return [...known, ...unknown.filter(({ stagingPath }) => !paths.has(stagingPath))];
  }

  /** Directories of volumes with claims are named after their PersistentVolumes. */
  async #byObject(name: string, signal: AbortSignal | undefined): Promise<VolumeIdentity | undefined> {
    if (signal === undefined) return undefined;
    try {
      const { spec } = (await this.#deps.storage()?.persistentVolume(name, signal)) ?? {};
      return spec?.csi && { driver: spec.csi.driver, handle: spec.csi.volumeHandle };
    } catch (error) {
      signal.throwIfAborted();
      this.#deps.log.debug("cannot read a PersistentVolume", { volume: name, error: errorMessage(error) });
      return undefined;
    }
  }

  #targetOf(uid: string, name: string): string {
    return `${this.#pathOf({ kind: "published", uid, name })}/mount`;
  }

  #pathOf(volume: UnknownVolume): string {
    return pathOf(this.#deps.names, volume);
  }

  #tell(volume: UnknownVolume): void {
    const { journal, log } = this.#deps;
    const path = this.#pathOf(volume);
    const isDirectory = volume.kind === "unlisted";
    const why = isDirectory
      ? "a directory of volumes is damaged"
      : "the data file of a mounted volume is missing or damaged";
    journal.record({
      kind: "note",
      what: "VolumeUnknown",
      message: `${why}: nothing is detached that it could be: ${path}`,
    });
    if (isDirectory) log.warn("directory of volumes is damaged", { path });
    else log.warn("data file of a mounted volume is missing or damaged", { path });
  }
}
