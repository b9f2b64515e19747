import type { Pod } from "../api/pod.ts";
import type { Volume } from "../api/volume.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Random } from "../ports/random.ts";
import { NotKnownYetError } from "../runtime/config/container-config-error.ts";
import { AtomicWriter, type Payload } from "./atomic-writer.ts";
import { type EmptyDirectories, type EmptyDirectory, emptyDirectory } from "./empty-dir.ts";
import { nestedMountPoints } from "./nested-mount-points.ts";
import { type PayloadInputs, payloadInputs, volumePayload } from "./payload.ts";
import type { OwnFileSystem } from "./own-file-system.ts";
import { NotNowError } from "../runtime/volume-error.ts";
import type { VolumePaths } from "./volume-paths.ts";
import type { VolumeSpec } from "./volume-spec.ts";
import type { FoundVolume, PreparedVolume, ReconstructedVolume, VolumeContent, VolumePlugin } from "./volume-plugin.ts";

export interface ProjectingDependencies {
  readonly files: Files;
  readonly clock: Pick<Clock, "now">;
  readonly random: Random;
  readonly directories: EmptyDirectories;
  readonly payload: PayloadInputs;
}

/** A volume type with content from objects. */
export interface ProjectedType {
  readonly type: "configMap" | "secret" | "downwardAPI" | "projected";
  readonly name: string;
  /** Whether the content must not touch the disk. */
  readonly inMemory: boolean;
}

/** `configMap`, `secret`, `downwardAPI` or `projected`: files from objects, updated with them. */
export class ProjectingPlugin implements VolumePlugin {
  readonly name: string;
  readonly followsObjects = true;
  readonly #deps: ProjectingDependencies;
  readonly #type: ProjectedType;

  constructor(deps: ProjectingDependencies, type: ProjectedType) {
    this.#deps = deps;
    this.#type = type;
    this.name = type.name;
  }

  owns({ volume }: VolumeSpec): boolean {
    return volume[this.#type.type] !== undefined;
  }

  prepare(pod: Pod, { volume }: VolumeSpec, paths: VolumePaths): PreparedVolume {
    return new ProjectedVolume(this.#deps, this.#type, pod, volume, emptyDirectory(paths, this.name, volume.name));
  }

  async reconstruct(found: FoundVolume): Promise<ReconstructedVolume | undefined> {
    return this.#deps.directories.reconstruct(this.name, found);
  }
}

class ProjectedVolume implements PreparedVolume {
  readonly name: string;
  readonly type: string;
  readonly hostPath: string;
  readonly readOnly = true;
  readonly own = true;
  readonly content: VolumeContent;
  readonly #deps: ProjectingDependencies;
  readonly #plugin: string;
  /** Undefined: its content may be on the disk. */
  readonly #memory: OwnFileSystem | undefined;
  readonly #pod: Pod;
  readonly #volume: Volume;
  readonly #place: EmptyDirectory;
  readonly #writer: AtomicWriter;

  constructor(
    deps: ProjectingDependencies,
    { type, name, inMemory }: ProjectedType,
    pod: Pod,
    volume: Volume,
    place: EmptyDirectory,
  ) {
    this.name = volume.name;
    this.type = type;
    this.hostPath = place.directory;
    this.#deps = deps;
    this.#plugin = name;
    this.#memory = inMemory ? deps.directories.memory(pod, volume.name) : undefined;
    this.#pod = pod;
    this.#volume = volume;
    this.#place = place;
    this.#writer = new AtomicWriter(deps, place.directory);
    this.content = {
      inputs: () => payloadInputs(volume, pod, deps.payload),
      isThere: async () => (await this.#isReady()) && (await this.#writer.hasContent()),
      isOutdated: async () => (await this.#isReady()) && !(await this.#isCurrent()),
      update: async () => this.#write(this.#payload()),
    };
  }

  async isSetUp(): Promise<boolean> {
    if (!(await this.#isReady())) return false;
    let files: Payload;
    try {
      files = this.#payload();
    } catch (error) {
      // After a start without an API server the files of an earlier run stay in use.
      return (error instanceof NotKnownYetError || error instanceof NotNowError) && (await this.#writer.hasContent());
    }
    return (await this.#missingMountPoints()).length === 0 && (await this.#writer.isCurrent(files));
  }

  async setUp(signal: AbortSignal): Promise<void> {
    // Read before anything is created: a missing object leaves nothing behind.
    const files = this.#payload();
    await this.#deps.directories.setUp(this.#place, this.#memory, async () => {
      for (const path of await this.#missingMountPoints()) await this.#deps.files.makeDirectory(path, 0o755);
    });
    if (!(await this.#writer.isCurrent(files))) await this.#write(files, signal);
  }

  /**
   * Absolute. A pod may get an ephemeral container with further ones, and an update of the files leaves out those that
   * are among them.
   */
  async #missingMountPoints(): Promise<string[]> {
    const { files } = this.#deps;
    const paths = nestedMountPoints(this.#pod, this.name).map((path) => `${this.hostPath}/${path}`);
    const found = await Promise.all(paths.map((path) => files.stat(path)));
    return paths.filter((_, index) => found[index] === undefined);
  }

  #isReady(): Promise<boolean> {
    return this.#deps.directories.isReady(this.#place, this.#memory);
  }

  /** Whether it has its objects' current content. */
  async #isCurrent(): Promise<boolean> {
    let files: Payload;
    try {
      files = this.#payload();
    } catch {
      // The write will report the problem.
      return false;
    }
    return await this.#writer.isCurrent(files);
  }

  #payload(): Payload {
    return volumePayload(this.#volume, this.#pod, this.#deps.payload) ?? new Map();
  }

  async #write(files: Payload, signal?: AbortSignal): Promise<void> {
    const { directories } = this.#deps;
    const given = { plugin: this.#plugin, directory: this.hostPath, readOnly: true };
    await this.#writer.write(files, () => directories.giveToGroup(this.#pod, given, signal));
  }
}
