import type { Pod } from "../api/pod.ts";
import { errorMessage } from "../base/errors.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import type { VolumeMeter } from "../volumes/volume-meter.ts";
import { VolumeOperationError } from "../volumes/volume-operation-error.ts";
import type { VolumePaths } from "../volumes/volume-paths.ts";
import type { AttachedVolume, PreparedVolume, VolumeUpkeep } from "../volumes/volume-plugin.ts";
import { BlockForm } from "./block-form.ts";
import { isFinal } from "./call-error.ts";
import type { CsiClient } from "./csi-client.ts";
import { PublicationUpkeep, type PublishedVolume } from "./csi-upkeep.ts";
import { ExpansionUpkeep, type GrowingVolume } from "./expansion-upkeep.ts";
import type { ClaimedVolume } from "./expansions.ts";
import { MountForm } from "./mount-form.ts";
import type { Publication } from "./publications.ts";
import { lifecycleProblem } from "./requests.ts";
import type { CsiSource } from "./source.ts";
import { holderOf } from "./take-up.ts";
import { type Caller, type PublishPaths, VolumeCalls } from "./volume-calls.ts";
import type { VolumeForm } from "./volume-form.ts";
import { CsiMeter, type MeteredVolume } from "./volume-meter.ts";
import type { CsiVolumeParts } from "./volume-parts.ts";

/**
 * A CSI volume of one pod: staged once per node, if the driver supports it, and published to the pod. It is kept as long
 * as its pod runs, of which there may be hundreds: what is seldom needed is computed.
 */
export class CsiVolume implements PreparedVolume, PublishedVolume, GrowingVolume, MeteredVolume {
  readonly pod: Pod;
  readonly source: CsiSource;
  readonly #parts: CsiVolumeParts;
  readonly #form: VolumeForm;
  readonly #publication: Publication;
  readonly #claimed: ClaimedVolume | undefined;

  /** @param claimed undefined: it has no claim, and is never expanded */
  constructor(
    parts: CsiVolumeParts,
    pod: Pod,
    source: CsiSource,
    paths: VolumePaths,
    claimed: ClaimedVolume | undefined,
  ) {
    this.#parts = parts;
    this.pod = pod;
    this.source = source;
    this.#claimed = claimed;
    const Form = source.mode === "Block" ? BlockForm : MountForm;
    this.#form = new Form(parts, pod, source, paths);
    this.#publication = parts.publications.take(pod.metadata.uid, source.name, source);
  }

  get type(): string {
    return "csi";
  }

  get name(): string {
    return this.source.name;
  }

  get hostPath(): string {
    return this.#form.hostPath;
  }

  get measured(): string {
    return this.#form.measured;
  }

  get readOnly(): boolean {
    return this.source.readOnly;
  }

  get own(): boolean {
    // Files of a mount with a label have it, and cannot get another.
    const isLabelled = this.#label !== undefined;
    return this.source.mode === "Filesystem" && !this.source.readOnly && !isLabelled;
  }

  /** True only after a call of this run confirmed it. */
  get isPublished(): boolean {
    return this.#publication.state === "published";
  }

  get isOutdated(): boolean {
    const { clock, objects, republishMs } = this.#parts;
    const { driver } = this.source;
    return (
      objects.peek(driver)?.spec.requiresRepublish === true &&
      clock.monotonic() - this.#publication.publishedAtMs >= republishMs
    );
  }

  async isSetUp(): Promise<boolean> {
    return this.isPublished;
  }

  async setUp(signal: AbortSignal, attached?: AttachedVolume): Promise<void> {
    using _turn = await this.#turn(signal);
    // The upkeep has confirmed it meanwhile.
    if (this.isPublished) return;
    const { stage, publish, complete } = this.#form.words;
    if (this.source.lifecycle === "Persistent") {
      await this.#step(stage.step, signal, async () => {
        const found = await this.#calls.caller(stage.caller, attached, signal);
        await this.#decideLabel(found);
        await this.#stage(found);
      });
    }
    const caller = await this.#step(publish.step, signal, async () => {
      const found = await this.#calls.caller(publish.caller, attached, signal);
      this.#checkLifecycle(found);
      await this.#publish(found);
      return found;
    });
    await this.#step(complete, signal, () => this.#form.complete(caller, false));
    await this.#expand(signal);
    if (this.#label !== undefined) this.#parts.observer?.seLinuxVolume("admitted", this.source.driver);
    this.#publication.state = "published";
    this.#publication.publishedAtMs = this.#parts.clock.monotonic();
  }

  /** Its stage may be lost, too, as with a driver whose container had mounts of its own. */
  lost(): void {
    const { driver, handle } = this.source;
    if (this.isPublished) this.#publication.state = "uncertain";
    this.#parts.devices.lost(driver, handle);
  }

  get meter(): VolumeMeter {
    return new CsiMeter(this.#parts, this);
  }

  get upkeeps(): readonly VolumeUpkeep[] {
    const publication = new PublicationUpkeep(this.#parts, this);
    if (this.#claimed === undefined) return [publication];
    return [publication, new ExpansionUpkeep(this.#parts, this.#claimed, this)];
  }

  async growTo(bytes: bigint, signal: AbortSignal): Promise<void> {
    const caller = await this.#calls.caller("Expander.NodeExpand", undefined, signal);
    await this.#calls.expand(caller, await this.#pathsOf(caller), bytes);
  }

  /** Publishes the volume again while the pod uses it, and completes it as its set-up. A failure does not change it. */
  async republish(signal: AbortSignal, attached: AttachedVolume | undefined): Promise<void> {
    const { publishedAtMs } = this.#publication;
    using _turn = await this.#turn(signal);
    // Another of the pod's volumes has the same claim.
    if (this.#publication.publishedAtMs !== publishedAtMs) return;
    const { publish, complete } = this.#form.words;
    const caller = await this.#step(publish.step, signal, async () => {
      const found = await this.#calls.caller(publish.caller, attached, signal);
      await this.#call(found, () => {});
      return found;
    });
    // A device is mapped already, and its Events are not repeated.
    if (this.source.mode === "Filesystem") {
      await this.#step(complete, signal, () => this.#form.complete(caller, true));
    }
    this.#publication.publishedAtMs = this.#parts.clock.monotonic();
  }

  get #calls(): VolumeCalls {
    return new VolumeCalls(this.#parts, this.pod, this.source);
  }

  async #turn(signal: AbortSignal): Promise<Disposable> {
    return await this.#parts.publications.turn(this.pod.metadata.uid, this.name, signal);
  }

  /** @throws VolumeOperationError, or the signal's reason */
  async #step<T>(step: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    // A call before it has come to its end all the same.
    signal.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      throw new VolumeOperationError(step, this.name, error);
    }
  }

  /** As upstream: only for file systems. */
  #checkLifecycle({ driver: object }: Caller): void {
    const { mode, driver, lifecycle } = this.source;
    if (mode === "Block") return;
    const problem = lifecycleProblem(driver, object, lifecycle);
    if (problem === undefined) return;
    throw new VolumeError(`kubernetes.io/csi: mounter.SetupAt failed to check volume lifecycle mode: ${problem}`);
  }

  /** Expands it to the size of its PersistentVolume before its pod uses it. */
  async #expand(signal: AbortSignal): Promise<void> {
    const claimed = this.#claimed;
    const { expansions } = this.#parts;
    if (claimed === undefined || !expansions.hasGrown(claimed)) return;
    try {
      // The registration that the volume was published with may have ended since, and its client with it.
      const { client } = await this.#calls.caller("Expander.NodeExpand", undefined, signal);
      if (!(await client.supports("expand", { signal }))) return;
      await expansions.duringSetUp(claimed, (bytes) => this.growTo(bytes, signal), signal);
    } catch (error) {
      signal.throwIfAborted();
      throw new VolumeOperationError(this.#form.words.expand, this.name, error, " while expanding volume");
    }
  }

  get #label(): string | undefined {
    return this.#publication.seLinux?.label;
  }

  /** What an earlier run has mounted keeps its label: nothing is mounted anew under a running pod. */
  async #decideLabel({ driver }: Caller): Promise<void> {
    const label = driver?.spec.seLinuxMount === true ? this.source.seLinuxLabel : undefined;
    this.#publication.seLinux ??= (await this.#form.recorded()) ?? { label };
  }

  async #stage({ client, attached, signal }: Caller): Promise<void> {
    const { driver, handle, name } = this.source;
    const { stagingPath, staged, isAlwaysStaged } = this.#form;
    const stages = await this.#isStaged(client, signal);
    const { devices } = this.#parts;
    const holder = holderOf(this.pod.metadata.uid, name);
    // Another version of the driver may have staged it.
    if (!stages && !isAlwaysStaged) return devices.hold(driver, handle, holder);
    const volume = { driver, handle, name, mode: this.source.mode, stagingPath, seLinuxLabel: this.#label };
    await devices.stage(volume, staged, holder, signal, async (staging) => {
      // The turns of other pods may have outlasted the registration.
      const now = await this.#calls.caller(this.#form.words.stage.caller, attached, signal);
      if (!(await this.#isStaged(now.client, signal))) return;
      await this.#calls.stage(now, { staging, seLinuxLabel: this.#label });
    });
  }

  async #pathsOf({ client, signal }: Caller): Promise<PublishPaths> {
    const isStaged = await this.#isStaged(client, signal);
    const { driver, handle } = this.source;
    const staging = this.#parts.devices.stagingPath(driver, handle) ?? this.#form.stagingPath;
    return { target: this.#form.target, staging: isStaged ? staging : undefined };
  }

  /** A published volume was staged before. */
  async #isStaged(client: CsiClient, signal: AbortSignal): Promise<boolean> {
    return this.source.lifecycle === "Persistent" && (await client.supports("stageUnstage", { signal }));
  }

  async #publish(caller: Caller): Promise<void> {
    // An earlier run may have published it.
    const isKnown = this.#publication.state !== "absent" || (await this.#form.recorded()) !== undefined;
    await this.#form.save(this.#label);
    try {
      await this.#call(caller, () => (this.#publication.state = "uncertain"));
    } catch (error) {
      // After a call with an unknown outcome it may still be published.
      if (isFinal(error) && !isKnown) await this.#discard();
      throw error;
    }
  }

  /** A driver may claim a definite failure after it has published the volume, which then is still to be unpublished. */
  async #discard(): Promise<void> {
    const { mounts, log } = this.#parts;
    const { target } = this.#form;
    try {
      if ((await mounts.below(target)).length > 0) return;
      this.#publication.state = "absent";
      await this.#form.discard();
    } catch (error) {
      log.warn("cannot remove what is left of a volume", { path: target, error: errorMessage(error) });
    }
  }

  async #call(caller: Caller, calling: () => void): Promise<void> {
    await this.#calls.publish(caller, { ...(await this.#pathsOf(caller)), seLinuxLabel: this.#label }, calling);
  }
}
