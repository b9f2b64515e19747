import type { Pod } from "../api/pod.ts";
import { removeEmpty } from "../ports/files.ts";
import { type BlockPlace, linkDevice, mapDevice, tellMapped } from "../volumes/block-map.ts";
import type { VolumePaths } from "../volumes/volume-paths.ts";
import { csiDirectoryName } from "./names.ts";
import type { CsiSource } from "./source.ts";
import { stagedBlockFiles } from "./staged-files.ts";
import type { FormWords, VolumeForm } from "./volume-form.ts";
import type { CsiVolumeParts } from "./volume-parts.ts";

const words: FormWords = {
  stage: { step: "MapVolume.SetUpDevice", caller: "blockMapper.SetUpDevice" },
  publish: { step: "MapVolume.MapPodDevice", caller: "blockMapper.MapPodDevice" },
  complete: "MapVolume.MapBlockVolume",
  expand: "MapVolume.MarkVolumeAsMounted",
};

/** A device: the driver publishes it below the plugin's directory, and the pod has a link to it. */
export function blockForm(parts: CsiVolumeParts, pod: Pod, { name }: CsiSource, paths: VolumePaths): VolumeForm {
  const { files, names, journal } = parts;
  const { uid } = pod.metadata;
  const link = paths.device(csiDirectoryName, name);
  const target = names.blockPublish(name, uid);
  const place: BlockPlace = { globalMap: names.blockGlobalMap(name), uid, link };
  return {
    words,
    hostPath: link,
    target,
    measured: `${place.globalMap}/${uid}`,
    stagingPath: names.blockStaging(name),
    staged: stagedBlockFiles(parts, names),
    isAlwaysStaged: true,
    isThere: async () => (await files.stat(link)) !== undefined,
    async save() {
      await files.makeDirectory(names.blockPublishDirectory(name), 0o750);
      await linkDevice(parts, target, place);
    },
    async discard() {
      await files.remove(link);
      await removeEmpty(files, names.blockPublishDirectory(name));
    },
    async complete() {
      const device = await files.realPath(target);
      await mapDevice(parts, device, { ...place, link });
      const [globalMap, shownLink] = [place.globalMap, link].map((path) => names.toldToDrivers(path));
      tellMapped(journal, pod, name, { globalMap: globalMap ?? "", link: shownLink ?? "" });
    },
  };
}
