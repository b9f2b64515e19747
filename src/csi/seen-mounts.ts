import type { Pod } from "../api/pod.ts";
import { isMountPoint, type Mounts } from "../ports/mounts.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import type { VolumePaths } from "../volumes/volume-paths.ts";
import type { PreparedVolume, VolumePlugin } from "../volumes/volume-plugin.ts";
import type { VolumeSpec } from "../volumes/volume-spec.ts";
import type { ToldPlace } from "./volume-parts.ts";

/**
 * Wraps the plugin: a volume only counts as set up when its mount is visible here. If a driver's mount does not
 * propagate from its container, the pod would get an empty directory whose content is lost with it.
 */
export function withSeenMounts(
  plugin: VolumePlugin,
  mounts: Pick<Mounts, "below">,
  place?: Pick<ToldPlace, "problem">,
): VolumePlugin {
  const { name, followsObjects, supportsMountOptions } = plugin;
  const prepare = (pod: Pod, spec: VolumeSpec, paths: VolumePaths): PreparedVolume => {
    const volume = plugin.prepare(pod, spec, paths);
    // A block volume's device is checked when it is bind-mounted.
    return spec.mode === "Block" ? volume : seen(volume, mounts, place);
  };
  return {
    ...{ name, followsObjects, prepare, ...(supportsMountOptions && { supportsMountOptions }) },
    owns: (spec) => plugin.owns(spec),
    reconstruct: (found) => plugin.reconstruct(found),
    attachment: async (spec, signal) => await plugin.attachment?.(spec, signal),
    setUpsEnded: (uid, found) => plugin.setUpsEnded?.(uid, found),
    forget: (uid) => plugin.forget?.(uid),
  };
}

function seen(
  volume: PreparedVolume,
  mounts: Pick<Mounts, "below">,
  place: Pick<ToldPlace, "problem"> | undefined,
): PreparedVolume {
  const { name, type, hostPath, readOnly, upkeeps, meter } = volume;
  const isSeen = (): Promise<boolean> => isMountPoint(mounts, hostPath);
  return {
    ...{ name, type, hostPath, readOnly, ...(upkeeps && { upkeeps }), ...(meter && { meter }) },
    // Its set-up decides.
    get own() {
      return volume.own;
    },
    isSetUp: async () => (await volume.isSetUp()) && (await isSeen()),
    async setUp(signal, attached) {
      await volume.setUp(signal, attached);
      if (await isSeen()) return;
      volume.lost?.();
      const remedy = "its container has to mount the kubelet's pods directory with mountPropagation Bidirectional";
      // It may have been left to another kubelet during the call.
      const why = place?.problem ?? remedy;
      throw new VolumeError(`the driver has published the volume, but nothing is mounted at ${hostPath}: ${why}`);
    },
  };
}
