import type { Pod } from "../api/pod.ts";
import { errorMessage } from "../base/errors.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import { giveVolumeToGroup } from "../volumes/group-ownership.ts";
import { pluginLabel } from "../volumes/volume-operations.ts";
import type { VolumePaths } from "../volumes/volume-paths.ts";
import { csiDirectoryName } from "./names.ts";
import { removeVolumeDirectory } from "./removal.ts";
import { givesToGroup, groupPolicy } from "./requests.ts";
import type { CsiSource } from "./source.ts";
import { StagedMountFiles } from "./staged-files.ts";
import type { LabelDecision } from "./publications.ts";
import type { Caller } from "./volume-calls.ts";
import { loadVolumeData, saveVolumeData } from "./volume-data.ts";
import type { StagedFiles } from "./device-mounts.ts";
import type { FormWords, VolumeForm } from "./volume-form.ts";
import type { CsiVolumeParts } from "./volume-parts.ts";

const words: FormWords = {
  stage: { step: "MountVolume.MountDevice", caller: "attacher.MountDevice" },
  publish: { step: "MountVolume.SetUp", caller: "mounter.SetUpAt" },
  complete: "MountVolume.SetUp",
  expand: "MountVolume.Setup",
};

/** A file system: the driver mounts it in the pod's directory. */
export class MountForm implements VolumeForm {
  readonly #parts: CsiVolumeParts;
  readonly #pod: Pod;
  readonly #source: CsiSource;
  readonly #paths: VolumePaths;

  constructor(parts: CsiVolumeParts, pod: Pod, source: CsiSource, paths: VolumePaths) {
    this.#parts = parts;
    this.#pod = pod;
    this.#source = source;
    this.#paths = paths;
  }

  get words(): FormWords {
    return words;
  }

  get hostPath(): string {
    return this.target;
  }

  get target(): string {
    return `${this.#directory}/mount`;
  }

  get measured(): string {
    return this.target;
  }

  get stagingPath(): string {
    return `${this.#stagedDirectory}/globalmount`;
  }

  get staged(): StagedFiles {
    return new StagedMountFiles(this.#parts, this.#stagedDirectory);
  }

  get isAlwaysStaged(): boolean {
    return false;
  }

  async recorded(): Promise<LabelDecision | undefined> {
    const data = await loadVolumeData(this.#parts.files, this.#directory);
    return data && { label: data.seLinuxLabel };
  }

  async save(seLinuxLabel: string | undefined): Promise<void> {
    const { files, names } = this.#parts;
    const { driver, handle, name, lifecycle } = this.#source;
    const directory = this.#directory;
    await files.makeDirectory(directory, 0o750);
    await saveVolumeData(files, directory, {
      attachmentId: names.attachment(driver, handle),
      driverName: driver,
      nodeName: names.nodeName,
      seLinuxLabel,
      specVolumeId: name,
      volumeHandle: handle,
      lifecycleMode: lifecycle,
    });
  }

  async discard(): Promise<void> {
    await removeVolumeDirectory(this.#parts, this.#directory, this.target);
  }

  async complete(caller: Caller, isAgain: boolean): Promise<void> {
    await giveToGroup(this.#parts, this.#pod, this.#source, { target: this.target, isAgain }, caller);
  }

  get #directory(): string {
    return this.#paths.volume(csiDirectoryName, this.#source.name);
  }

  get #stagedDirectory(): string {
    return this.#parts.names.staged(this.#source.driver, this.#source.handle);
  }
}

async function giveToGroup(
  parts: CsiVolumeParts,
  pod: Pod,
  { readOnly, fsType, accessModes, lifecycle, handle, driver: driverName }: CsiSource,
  { target, isAgain }: { readonly target: string; readonly isAgain: boolean },
  { client, driver, signal }: Caller,
): Promise<void> {
  const gid = pod.spec.securityContext?.fsGroup;
  if (gid === undefined || (await client.supports("volumeMountGroup", { signal }))) return;
  // The group applies to inline volumes and PVs with access modes, not to PVs without any.
  const modes = lifecycle === "Ephemeral" ? undefined : (accessModes ?? []);
  if (!givesToGroup({ fsGroup: gid, readOnly, fsType, accessModes: modes }, groupPolicy(driver))) return;
  try {
    const plugin = pluginLabel(csiDirectoryName, driverName);
    await giveVolumeToGroup(parts, pod, { directory: target, shown: target, gid, plugin, isAgain }, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw new VolumeError(`applyFSGroup failed for vol ${handle}: ${errorMessage(error)}`, { cause: error });
  }
}
