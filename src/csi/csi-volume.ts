import type { Pod } from "../api/pod.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import type { VolumeMeter } from "../volumes/volume-meter.ts";
import { VolumeOperationError } from "../volumes/volume-operation-error.ts";
import type { VolumePaths } from "../volumes/volume-paths.ts";
import type { AttachedVolume, PreparedVolume, VolumeUpkeep } from "../volumes/volume-plugin.ts";
import { blockForm } from "./block-form.ts";
import { isFinal } from "./call-error.ts";
import type { CsiClient } from "./csi-client.ts";
import { csiUpkeep } from "./csi-upkeep.ts";
import { expansionUpkeep } from "./expansion-upkeep.ts";
import type { ClaimedVolume } from "./expansions.ts";
import { mountForm } from "./mount-form.ts";
import type { Publication } from "./publications.ts";
import { lifecycleProblem } from "./requests.ts";
import type { CsiSource } from "./source.ts";
import { type Caller, type PublishPaths, VolumeCalls } from "./volume-calls.ts";
import type { VolumeForm } from "./volume-form.ts";
import { csiMeter } from "./volume-meter.ts";
import type { CsiVolumeParts } from "./volume-parts.ts";

/** A CSI volume of one pod: staged once per node, if the driver supports it, and published to the pod. */
export class CsiVolume implements PreparedVolume {
  readonly type = "csi";
  readonly name: string;
  readonly hostPath: string;
  readonly readOnly: boolean;
  readonly own: boolean;
  readonly #parts: CsiVolumeParts;
  readonly #pod: Pod;
  readonly #source: CsiSource;
  readonly #calls: VolumeCalls;
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
    this.#pod = pod;
    this.#source = source;
    this.#claimed = claimed;
    this.#calls = new VolumeCalls(parts, pod, source);
    this.#form = source.mode === "Block" ? blockForm(parts, pod, source, paths) : mountForm(parts, pod, source, paths);
    this.name = source.name;
    this.readOnly = source.readOnly;
    this.own = source.mode === "Filesystem" && !source.readOnly;
    this.hostPath = this.#form.hostPath;
    this.#publication = parts.publications.take(pod.metadata.uid, source.name, source);
  }

  /** True only after a call of this run confirmed it. */
  async isSetUp(): Promise<boolean> {
    return this.#publication.state === "published";
  }

  async setUp(signal: AbortSignal, attached?: AttachedVolume): Promise<void> {
    using _turn = await this.#publication.turn.acquire(signal);
    // The upkeep has confirmed it meanwhile.
    if (await this.isSetUp()) return;
    const { stage, publish, complete } = this.#form.words;
    if (this.#source.lifecycle === "Persistent") {
      await this.#step(stage.step, signal, async () => {
        await this.#stage(await this.#calls.caller(stage.caller, attached, signal));
      });
    }
    const caller = await this.#step(publish.step, signal, async () => {
      const found = await this.#calls.caller(publish.caller, attached, signal);
      this.#checkLifecycle(found);
      await this.#publish(found);
      return found;
    });
    await this.#step(complete, signal, () => this.#form.complete(caller));
    await this.#expand(caller);
    this.#publication.state = "published";
    this.#publication.publishedAtMs = this.#parts.clock.monotonic();
  }

  get meter(): VolumeMeter {
    return csiMeter(this.#parts, this.#source, this.#form.measured);
  }

  get upkeeps(): readonly VolumeUpkeep[] {
    const claimed = this.#claimed;
    if (claimed === undefined) return [this.#publicationUpkeep()];
    const expansion = expansionUpkeep(this.#parts, claimed, this.#source, {
      isPublished: () => this.#publication.state === "published",
      call: async (bytes, signal) => {
        const caller = await this.#calls.caller("Expander.NodeExpand", undefined, signal);
        await this.#calls.expand(caller, await this.#pathsOf(caller), bytes);
      },
    });
    return [this.#publicationUpkeep(), expansion];
  }

  #publicationUpkeep(): VolumeUpkeep {
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

  /** Publishes the volume again while the pod uses it. A failure does not change it. */
  async #republish(signal: AbortSignal, attached: AttachedVolume | undefined): Promise<void> {
    using _turn = await this.#publication.turn.acquire(signal);
    const { step, caller } = this.#form.words.publish;
    await this.#step(step, signal, async () => {
      await this.#call(await this.#calls.caller(caller, attached, signal), () => {});
    });
    this.#publication.publishedAtMs = this.#parts.clock.monotonic();
  }

  /** @throws VolumeOperationError, or the signal's reason */
  async #step<T>(step: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      throw new VolumeOperationError(step, this.name, error);
    }
  }

  /** As upstream: only for file systems. */
  #checkLifecycle({ driver: object }: Caller): void {
    const { mode, driver, lifecycle } = this.#source;
    if (mode === "Block") return;
    const problem = lifecycleProblem(driver, object, lifecycle);
    if (problem === undefined) return;
    throw new VolumeError(`kubernetes.io/csi: mounter.SetupAt failed to check volume lifecycle mode: ${problem}`);
  }

  /** Expands it to the size of its PersistentVolume before its pod uses it. */
  async #expand(caller: Caller): Promise<void> {
    const claimed = this.#claimed;
    const { client, signal } = caller;
    if (claimed === undefined || !(await client.supports("expand", { signal }))) return;
    const call = async (bytes: bigint): Promise<void> => {
      await this.#calls.expand(caller, await this.#pathsOf(caller), bytes);
    };
    try {
      await this.#parts.expansions.duringSetUp(claimed, call, signal);
    } catch (error) {
      signal.throwIfAborted();
      throw new VolumeOperationError(this.#form.words.expand, this.name, error, " while expanding volume");
    }
  }

  async #stage(caller: Caller): Promise<void> {
    const { driver, handle, name } = this.#source;
    const { stagingPath, staged, isAlwaysStaged } = this.#form;
    const stages = await this.#isStaged(caller.client, caller.signal);
    if (!stages && !isAlwaysStaged) return;
    const volume = { driver, handle, name, stagingPath };
    const holder = `${this.#pod.metadata.uid}/${name}`;
    await this.#parts.devices.stage(volume, staged, holder, caller.signal, async () => {
      if (stages) await this.#calls.stage(caller, stagingPath);
    });
  }

  async #pathsOf({ client, signal }: Caller): Promise<PublishPaths> {
    const isStaged = await this.#isStaged(client, signal);
    return { target: this.#form.target, staging: isStaged ? this.#form.stagingPath : undefined };
  }

  /** A published volume was staged before. */
  async #isStaged(client: CsiClient, signal: AbortSignal): Promise<boolean> {
    return this.#source.lifecycle === "Persistent" && (await client.supports("stageUnstage", { signal }));
  }

  async #publish(caller: Caller): Promise<void> {
    // An earlier run may have published it.
    const isKnown = this.#publication.state !== "absent" || (await this.#form.isThere());
    await this.#form.save();
    try {
      await this.#call(caller, () => (this.#publication.state = "uncertain"));
    } catch (error) {
      // After a call with an unknown outcome it may still be published.
      if (isFinal(error) && !isKnown) {
        this.#publication.state = "absent";
        await this.#form.discard();
      }
      throw error;
    }
  }

  async #call(caller: Caller, calling: () => void): Promise<void> {
    await this.#calls.publish(caller, await this.#pathsOf(caller), calling);
  }
}
