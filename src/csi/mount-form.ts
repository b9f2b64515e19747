import type { Pod } from "../api/pod.ts";
import { errorMessage } from "../base/errors.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import { giveVolumeToGroup } from "../volumes/group-ownership.ts";
import type { VolumePaths } from "../volumes/volume-paths.ts";
import { csiDirectoryName } from "./names.ts";
import { removeVolumeDirectory } from "./removal.ts";
import { givesToGroup, groupPolicy } from "./requests.ts";
import type { CsiSource } from "./source.ts";
import { stagedMountFiles } from "./staged-files.ts";
import type { Caller } from "./volume-calls.ts";
import { loadVolumeData, saveVolumeData } from "./volume-data.ts";
import type { FormWords, VolumeForm } from "./volume-form.ts";
import type { CsiVolumeParts } from "./volume-parts.ts";

const words: FormWords = {
  stage: { step: "MountVolume.MountDevice", caller: "attacher.MountDevice" },
  publish: { step: "MountVolume.SetUp", caller: "mounter.SetUpAt" },
  complete: "MountVolume.SetUp",
  expand: "MountVolume.Setup",
};

/** A file system: the driver mounts it in the pod's directory. */
export function mountForm(parts: CsiVolumeParts, pod: Pod, source: CsiSource, paths: VolumePaths): VolumeForm {
  const { files, names } = parts;
  const { driver, handle, name, lifecycle } = source;
  const directory = paths.volume(csiDirectoryName, name);
  const stagedDirectory = names.staged(driver, handle);
  const target = `${directory}/mount`;
  return {
    words,
    hostPath: target,
    target,
    measured: target,
    stagingPath: `${stagedDirectory}/globalmount`,
    staged: stagedMountFiles(parts, stagedDirectory),
    isAlwaysStaged: false,
    isThere: async () => (await loadVolumeData(files, directory)) !== undefined,
    async save() {
      await files.makeDirectory(directory, 0o750);
      await saveVolumeData(files, directory, {
        attachmentId: names.attachment(driver, handle),
        driverName: driver,
        nodeName: names.nodeName,
        specVolumeId: name,
        volumeHandle: handle,
        lifecycleMode: lifecycle,
      });
    },
    async discard() {
      await removeVolumeDirectory(parts, directory, target);
    },
    complete: (caller) => giveToGroup(parts, pod, source, target, caller),
  };
}

async function giveToGroup(
  parts: CsiVolumeParts,
  pod: Pod,
  { readOnly, fsType, accessModes, lifecycle, handle }: CsiSource,
  target: string,
  { client, driver, signal }: Caller,
): Promise<void> {
  const gid = pod.spec.securityContext?.fsGroup;
  if (gid === undefined || (await client.supports("volumeMountGroup", { signal }))) return;
  // The group applies to inline volumes and PVs with access modes, not to PVs without any.
  const modes = lifecycle === "Ephemeral" ? undefined : (accessModes ?? []);
  if (!givesToGroup({ fsGroup: gid, readOnly, fsType, accessModes: modes }, groupPolicy(driver))) return;
  try {
    await giveVolumeToGroup(parts, pod, { directory: target, shown: target, gid }, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw new VolumeError(`applyFSGroup failed for vol ${handle}: ${errorMessage(error)}`, { cause: error });
  }
}
