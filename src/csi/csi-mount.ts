import type { Pod } from "../api/pod.ts";
import { errorMessage } from "../base/errors.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import { VolumeOperationError } from "../volumes/volume-operation-error.ts";
import type { VolumePaths } from "../volumes/volume-paths.ts";
import type { AttachedVolume, PreparedVolume, VolumeUpkeep } from "../volumes/volume-plugin.ts";
import { isFinal } from "./call-error.ts";
import type { CsiClient } from "./csi-client.ts";
import { csiUpkeep } from "./csi-upkeep.ts";
import type { StagedFiles } from "./device-mounts.ts";
import { giveVolumeToGroup } from "./group-ownership.ts";
import { csiDirectoryName } from "./names.ts";
import type { Publication } from "./publications.ts";
import { removeVolumeDirectory } from "./removal.ts";
import { givesToGroup, groupPolicy, lifecycleProblem } from "./requests.ts";
import type { CsiSource } from "./source.ts";
import { stagedMountFiles } from "./staged-files.ts";
import { type Caller, VolumeCalls } from "./volume-calls.ts";
import { loadVolumeData, saveVolumeData } from "./volume-data.ts";
import type { CsiVolumeParts } from "./volume-parts.ts";

/** A file system of a CSI driver for one pod: staged once a node, where the driver stages, and published to the pod. */
export class CsiMount implements PreparedVolume {
  readonly type = "csi";
  readonly name: string;
  readonly hostPath: string;
  readonly readOnly: boolean;
  readonly own: boolean;
  readonly #parts: CsiVolumeParts;
  readonly #pod: Pod;
  readonly #source: CsiSource;
  readonly #calls: VolumeCalls;
  readonly #directory: string;
  readonly #publication: Publication;

  constructor(parts: CsiVolumeParts, pod: Pod, source: CsiSource, paths: VolumePaths) {
    this.#parts = parts;
    this.#pod = pod;
    this.#source = source;
    this.#calls = new VolumeCalls(parts, pod, source);
    this.name = source.name;
    this.readOnly = source.readOnly;
    this.own = !source.readOnly;
    this.#directory = paths.volume(csiDirectoryName, source.name);
    this.hostPath = `${this.#directory}/mount`;
    this.#publication = parts.publications.take(pod.metadata.uid, source.name, source);
  }

  /** By a call of this life. */
  async isSetUp(): Promise<boolean> {
    return this.#publication.state === "published";
  }

  async setUp(signal: AbortSignal, attached?: AttachedVolume): Promise<void> {
    using _turn = await this.#publication.turn.acquire(signal);
    // Confirmed meanwhile, beside the pod's steps.
    if (await this.isSetUp()) return;
    const { lifecycle, driver, name } = this.#source;
    if (lifecycle === "Persistent") {
      try {
        await this.#stage(await this.#calls.caller("attacher.MountDevice", attached, signal));
      } catch (error) {
        signal.throwIfAborted();
        throw new VolumeOperationError("MountVolume.MountDevice", name, error);
      }
    }
    const caller = await this.#calls.caller("mounter.SetUpAt", attached, signal);
    const problem = lifecycleProblem(driver, caller.driver, lifecycle);
    if (problem !== undefined) {
      throw new VolumeError(`kubernetes.io/csi: mounter.SetupAt failed to check volume lifecycle mode: ${problem}`);
    }
    await this.#publish(caller);
    await this.#giveToGroup(caller);
    this.#publication.state = "published";
    this.#publication.publishedAtMs = this.#parts.clock.monotonic();
  }

  get upkeep(): VolumeUpkeep {
    const { clock, objects } = this.#parts;
    const { driver } = this.#source;
    return csiUpkeep(this.#parts, this.#pod, this.#source, {
      isConfirmed: () => this.#publication.state === "published",
      isDue: () =>
        objects.peek(driver)?.spec.requiresRepublish === true &&
        clock.monotonic() - this.#publication.publishedAtMs >= this.#parts.republishMs,
      confirm: (signal, attached) => this.setUp(signal, attached),
      republish: (signal, attached) => this.#republish(signal, attached),
    });
  }

  /** Publishes it once more while the pod uses it. A failure leaves it as it is. */
  async #republish(signal: AbortSignal, attached: AttachedVolume | undefined): Promise<void> {
    using _turn = await this.#publication.turn.acquire(signal);
    await this.#call(await this.#calls.caller("mounter.SetUpAt", attached, signal), () => {});
    this.#publication.publishedAtMs = this.#parts.clock.monotonic();
  }

  async #stage(caller: Caller): Promise<void> {
    const { devices, names } = this.#parts;
    const { driver, handle, name } = this.#source;
    if (!(await this.#isStaged(caller.client, caller.signal))) return;
    const volume = { driver, handle, name, stagingPath: `${names.staged(driver, handle)}/globalmount` };
    const holder = `${this.#pod.metadata.uid}/${name}`;
    const files: StagedFiles = stagedMountFiles(this.#parts, names.staged(driver, handle));
    await devices.stage(volume, files, holder, caller.signal, () => this.#calls.stage(caller, volume.stagingPath));
  }

  /** What the driver publishes has been staged before. */
  async #isStaged(client: CsiClient, signal: AbortSignal): Promise<boolean> {
    return this.#source.lifecycle === "Persistent" && (await client.supports("stageUnstage", { signal }));
  }

  async #publish(caller: Caller): Promise<void> {
    const { files, names } = this.#parts;
    const { driver, handle, name, lifecycle } = this.#source;
    // An earlier life may have published it.
    const isKnown =
      this.#publication.state !== "absent" || (await loadVolumeData(files, this.#directory)) !== undefined;
    await files.makeDirectory(this.#directory, 0o750);
    await saveVolumeData(files, this.#directory, {
      attachmentId: names.attachment(driver, handle),
      driverName: driver,
      nodeName: names.nodeName,
      specVolumeId: name,
      volumeHandle: handle,
      lifecycleMode: lifecycle,
    });
    try {
      await this.#call(caller, () => (this.#publication.state = "uncertain"));
    } catch (error) {
      // After an uncertain one it may be published all the same.
      if (isFinal(error) && !isKnown) {
        this.#publication.state = "absent";
        await removeVolumeDirectory(this.#parts, this.#directory, this.hostPath);
      }
      throw error;
    }
  }

  async #call(caller: Caller, calling: () => void): Promise<void> {
    const { driver, handle } = this.#source;
    const isStaged = await this.#isStaged(caller.client, caller.signal);
    const staging = isStaged ? `${this.#parts.names.staged(driver, handle)}/globalmount` : undefined;
    await this.#calls.publish(caller, { target: this.hostPath, staging }, calling);
  }

  async #giveToGroup({ client, driver, signal }: Caller): Promise<void> {
    const { readOnly, fsType, accessModes, lifecycle, handle } = this.#source;
    const gid = this.#pod.spec.securityContext?.fsGroup;
    if (gid === undefined || (await client.supports("volumeMountGroup", { signal }))) return;
    // A PV without access modes is nobody's to give, other than an inline volume.
    const modes = lifecycle === "Ephemeral" ? undefined : (accessModes ?? []);
    if (!givesToGroup({ fsGroup: gid, readOnly, fsType, accessModes: modes }, groupPolicy(driver))) return;
    try {
      await giveVolumeToGroup(this.#parts, this.#pod, this.hostPath, gid, signal);
    } catch (error) {
      signal.throwIfAborted();
      throw new VolumeError(`applyFSGroup failed for vol ${handle}: ${errorMessage(error)}`, { cause: error });
    }
  }
}
