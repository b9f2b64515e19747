import type { Pod } from "../api/pod.ts";
import { removeEmpty } from "../ports/files.ts";
import { type BlockPlace, linkDevice, mapDevice, tellMapped } from "../volumes/block-map.ts";
import type { VolumePaths } from "../volumes/volume-paths.ts";
import { csiDirectoryName } from "./names.ts";
import type { LabelDecision } from "./publications.ts";
import type { CsiSource } from "./source.ts";
import type { StagedFiles } from "./device-mounts.ts";
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
export class BlockForm implements VolumeForm {
  readonly #parts: CsiVolumeParts;
  readonly #pod: Pod;
  readonly #name: string;
  readonly #paths: VolumePaths;

  constructor(parts: CsiVolumeParts, pod: Pod, { name }: CsiSource, paths: VolumePaths) {
    this.#parts = parts;
    this.#pod = pod;
    this.#name = name;
    this.#paths = paths;
  }

  get words(): FormWords {
    return words;
  }

  get hostPath(): string {
    return this.#paths.device(csiDirectoryName, this.#name);
  }

  get target(): string {
    return this.#parts.names.blockPublish(this.#name, this.#pod.metadata.uid);
  }

  get measured(): string {
    const { globalMap, uid } = this.#place;
    return `${globalMap}/${uid}`;
  }

  get stagingPath(): string {
    return this.#parts.names.blockStaging(this.#name);
  }

  get staged(): StagedFiles {
    return stagedBlockFiles(this.#parts, this.#parts.names);
  }

  get isAlwaysStaged(): boolean {
    return true;
  }

  async recorded(): Promise<LabelDecision | undefined> {
    return (await this.#parts.files.stat(this.hostPath)) && { label: undefined };
  }

  async save(): Promise<void> {
    const { files, names } = this.#parts;
    await files.makeDirectory(names.blockPublishDirectory(this.#name), 0o750);
    await linkDevice(this.#parts, this.target, this.#place);
  }

  async discard(): Promise<void> {
    const { files, names } = this.#parts;
    await files.remove(this.hostPath);
    await removeEmpty(files, names.blockPublishDirectory(this.#name));
  }

  async complete(): Promise<void> {
    const { files, names, journal } = this.#parts;
    const place = this.#place;
    const device = await files.realPath(this.target);
    await mapDevice(this.#parts, device, place);
    const [globalMap, link] = [names.toldToDrivers(place.globalMap), names.toldToDrivers(place.link)];
    tellMapped(journal, this.#pod, this.#name, { globalMap, link });
  }

  get #place(): BlockPlace {
    const globalMap = this.#parts.names.blockGlobalMap(this.#name);
    return { globalMap, uid: this.#pod.metadata.uid, link: this.hostPath };
  }
}
