import type { Pod } from "../api/pod.ts";
import type { Volume } from "../api/volume.ts";
import type { Emitter } from "../base/emitter.ts";
import { causeOf, errorMessage } from "../base/errors.ts";
import type { SharedTurn } from "../base/shared-turn.ts";
import type { Cause, Recorder } from "../journal/entry.ts";
import { type ActionInput, perform } from "../journal/perform.ts";
import { StorageLookupError } from "../objects/storage-lookup.ts";
import type { Clock } from "../ports/clock.ts";
import type { MountedVolume } from "../runtime/config/mounted-volumes.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import { type Attachments, AttachLimitError } from "./attachments.ts";
import { AwaitedError } from "./awaited-error.ts";
import { isExclusive } from "./claims.ts";
import type { ExclusiveVolumes } from "./exclusive-volumes.ts";
import { keptAttachment } from "./kept-attachment.ts";
import type { MountProgress } from "./mount-progress.ts";
import { isTranslated } from "./in-tree-translation.ts";
import { pauseBeforeRetry } from "./retry-pause.ts";
import { attachmentForSetUp, type SetUpAttachment } from "./set-up-attachment.ts";
import { PhaseFailures, type SetUpPhase } from "./set-up-phases.ts";
import { SELinuxLabelError } from "./selinux-label.ts";
import { affinityProblem } from "./volume-affinity.ts";
import { mountStep, setUpProblem, VolumeOperationError } from "./volume-operation-error.ts";
import { isSilence } from "./volume-meter.ts";
import type { VolumePaths } from "./volume-paths.ts";
import {
  type AttachmentRequest,
  knownInputs,
  type PreparedVolume,
  type VolumePlugin,
  type VolumeUpkeep,
} from "./volume-plugin.ts";
import { VolumeRemarks } from "./volume-remarks.ts";
import { driverOf, inlineSpec, mountOptionsOf, type VolumeSpec } from "./volume-spec.ts";
import type { VolumeSpecs } from "./volume-specs.ts";
import type { StorageWaits } from "./storage-waits.ts";
import type { VolumeStats } from "./volume-stats.ts";
import {
  labelOf,
  measuredMount,
  measuredOperation,
  type OperationLabel,
  type OperationObserver,
} from "./volume-operations.ts";
import type { VolumeUse } from "./volume-use.ts";

/** No event reports that a claim was bound. */
const longestLookMs = 10_000;

export interface VolumeSetUpDependencies {
  readonly clock: Clock;
  readonly journal: Recorder;
  /** The first plugin that owns a volume is responsible for it. */
  readonly plugins: readonly VolumePlugin[];
  readonly specs: VolumeSpecs;
  readonly exclusive: ExclusiveVolumes;
  /** Undefined without a cluster: nothing is attached there. */
  readonly attachments: Attachments | undefined;
  /** The Node's labels; undefined: unknown yet, or volumes are not claimed. */
  readonly nodeLabels: () => Readonly<Record<string, string>> | undefined;
  readonly observer: OperationObserver;
  readonly stats: Pick<VolumeStats, "add">;
  readonly waits: Pick<StorageWaits, "begin">;
}

export interface KeptPod {
  readonly pod: Pod;
  readonly use: VolumeUse;
  readonly paths: VolumePaths;
  readonly memory: VolumeMemory;
}

/** A pod whose volumes are set up for a start. */
export interface MountingPod extends KeptPod {
  /** Those of its volumes that its containers use. */
  readonly used: readonly Volume[];
  /** The latest that has waited for it, and why: the set-up outlasts the waits. */
  pod: Pod;
  cause: Cause;
  readonly progress: MountProgress;
}

/** What is remembered of a pod's volumes, by their names in the pod. */
export interface VolumeMemory {
  /** Their resolved sources, from their set-up. */
  readonly specs: Map<string, VolumeSpec>;
  /** The upkeep of external volumes. */
  readonly upkeeps: Map<string, readonly VolumeUpkeep[]>;
  /** The inputs of their last content. Nothing is read until they change. */
  readonly contents: Map<string, readonly unknown[]>;
  /** Since when those are wanted that are not set up yet, monotonic ms. */
  readonly wanted: Map<string, number>;
  /** The last reported reason of their wait. */
  readonly remarks: Map<string, string>;
  /** A user's requests to retry now what is in back-off. */
  readonly retries: Emitter;
}

/** One attempt at the set-up of a volume. */
interface Attempt {
  /** How far it has come. */
  phase: SetUpPhase;
}

interface SetUpWork {
  readonly prepared: PreparedVolume;
  readonly wantedMs: number;
  readonly attempt: Attempt;
}

/** Whether a volume is outside the pod and its node, so that its set-up may take long. */
export function isExternal(volume: Volume): boolean {
  const { persistentVolumeClaim, ephemeral, csi, nfs } = volume;
  return [persistentVolumeClaim, ephemeral, csi, nfs].some((source) => source !== undefined) || isTranslated(volume);
}

/** Sets up individual volumes of pods. */
export class VolumeSetUp {
  readonly remarks: VolumeRemarks;
  readonly #deps: VolumeSetUpDependencies;

  constructor(deps: VolumeSetUpDependencies) {
    this.#deps = deps;
    this.remarks = new VolumeRemarks(deps.journal);
  }

  pluginOf(spec: VolumeSpec): VolumePlugin | undefined {
    return this.#deps.plugins.find((plugin) => plugin.owns(spec));
  }

  labelOf(spec: VolumeSpec): OperationLabel | undefined {
    const plugin = this.pluginOf(spec);
    return plugin && labelOf(plugin, spec);
  }

  /** @throws VolumeError for volumes that no plugin owns: sources reject most of them earlier */
  prepare(pod: Pod, spec: VolumeSpec, paths: VolumePaths): PreparedVolume {
    return this.#plugin(spec).prepare(pod, spec, paths);
  }

  /**
   * Sets a volume up unless it is set up. External volumes are retried; others only while the pod waits for an external one.
   * @param turn held by each attempt
   * @throws VolumeError, or the signal's reason
   */
  async setUp(
    mounting: MountingPod,
    volume: Volume,
    turn: SharedTurn | undefined,
    signal: AbortSignal,
  ): Promise<MountedVolume> {
    const { progress } = mounting;
    const failures = new PhaseFailures();
    for (;;) {
      const attempt: Attempt = { phase: "claim" };
      try {
        using _turn = await turn?.acquire(signal);
        const mounted = await this.#try(mounting, volume, attempt, signal);
        progress.mounted(volume.name);
        this.remarks.goesOn(mounting, volume.name);
        return mounted;
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof AttachLimitError || !this.#mayWait(mounting, volume)) throw error;
        progress.failed(volume.name, errorMessage(error));
        const { phase } = attempt;
        await this.#pause(mounting, volume, { error, phase, failures: failures.add(phase) }, signal);
      }
    }
  }

  /**
   * The upkeep of a running pod's volume. Its source is resolved once.
   * @throws VolumeError, or the signal's reason
   */
  async upkeepsOf(kept: KeptPod, volume: Volume, signal: AbortSignal): Promise<readonly VolumeUpkeep[]> {
    const { pod, paths, memory } = kept;
    const known = memory.upkeeps.get(volume.name);
    if (known !== undefined) return known;
    const spec = await this.#keptSpec(kept, volume, signal);
    const prepared = this.prepare(pod, spec, paths);
    this.#meter(pod, spec, prepared);
    const { upkeeps = [] } = prepared;
    memory.upkeeps.set(volume.name, upkeeps);
    return upkeeps;
  }

  /**
   * Runs one upkeep of a running pod's volume.
   * @throws VolumeError, or the signal's reason
   */
  async keepUp(kept: KeptPod, volume: Volume, upkeep: VolumeUpkeep, signal: AbortSignal): Promise<void> {
    const spec = await this.#keptSpec(kept, volume, signal);
    // A pod that is still to start may be waiting until another gives it up.
    if ((await this.#otherUse(kept, spec)) !== undefined) return;
    const request = (): Promise<AttachmentRequest | undefined> => this.#attachment(spec, signal);
    const attachment = keptAttachment({ ...this.#deps, remarks: this.remarks }, kept, { spec, request }, signal);
    await upkeep.run(signal, attachment, kept.memory.retries);
  }

  async #keptSpec({ pod, use, memory }: KeptPod, volume: Volume, signal: AbortSignal): Promise<VolumeSpec> {
    const spec = memory.specs.get(volume.name) ?? (await this.#deps.specs.of(pod, volume, use, signal));
    memory.specs.set(volume.name, spec);
    return spec;
  }

  /** While the pod waits for an external volume, nothing else retries. */
  #mayWait({ used, progress }: MountingPod, volume: Volume): boolean {
    return isExternal(volume) || used.some((other) => isExternal(other) && progress.isMissing(other.name));
  }

  async #try(mounting: MountingPod, volume: Volume, attempt: Attempt, signal: AbortSignal): Promise<MountedVolume> {
    const { pod, paths } = mounting;
    const { specs, contents, wanted } = mounting.memory;
    const { clock } = this.#deps;
    const { name } = volume;
    const wantedMs = wanted.get(name) ?? clock.monotonic();
    wanted.set(name, wantedMs);
    const spec = specs.get(name) ?? (await this.#specOf(mounting, volume, signal));
    attempt.phase = "attachment";
    const prepared = this.prepare(pod, spec, paths);
    // The present inputs: a change during the write is not included.
    const inputs = knownInputs(prepared);
    // A volume that cannot be checked is set up as well; the set-up reports the problem.
    const isSetUp = await prepared.isSetUp().catch(() => false);
    const isUnchecked = prepared.leavesNoTrace === true && !specs.has(name);
    let isCurrent = true;
    if (!isSetUp || isUnchecked) {
      try {
        await this.#perform(mounting, spec, { prepared, wantedMs, attempt }, signal);
      } catch (error) {
        signal.throwIfAborted();
        // As upstream: what was set up stays in use, e.g. with the files of a ConfigMap that is gone by now.
        if (!specs.has(name) || (await prepared.content?.isThere().catch(() => false)) !== true) throw error;
        isCurrent = false;
      }
    }
    wanted.delete(name);
    specs.set(name, spec);
    this.#meter(pod, spec, prepared);
    if (inputs === undefined || !isCurrent) contents.delete(name);
    else contents.set(name, inputs);
    const { group } = spec;
    const { hostPath, readOnly, own } = prepared;
    const named = spec.name !== name && { directoryName: spec.name };
    return { hostPath, readOnly, own, ...named, ...(group !== undefined && { group }) };
  }

  async #specOf(mounting: MountingPod, volume: Volume, signal: AbortSignal): Promise<VolumeSpec> {
    if (!isExternal(volume)) return inlineSpec(volume);
    const { pod, use, progress } = mounting;
    try {
      const spec = await this.#deps.specs.of(pod, volume, use, signal);
      this.#plugin(spec);
      progress.processed(volume.name);
      this.remarks.processed(mounting, volume.name);
      return spec;
    } catch (error) {
      signal.throwIfAborted();
      const problem = errorMessage(error);
      const label = causeOf(error, SELinuxLabelError);
      if (label !== undefined) this.#deps.observer?.seLinuxVolume(label.outcome);
      if (progress.unprocessed(volume.name, problem)) this.remarks.unprocessed(mounting, volume.name, problem);
      throw error;
    }
  }

  async #attachment(spec: VolumeSpec, signal: AbortSignal): Promise<AttachmentRequest | undefined> {
    return await this.#plugin(spec).attachment?.(spec, signal);
  }

  #plugin(spec: VolumeSpec): VolumePlugin {
    const plugin = this.pluginOf(spec);
    if (plugin !== undefined) return plugin;
    const source = spec.persistentVolume?.spec ?? spec.volume;
    const type =
      unownedTypes.find((key) => Object.hasOwn(source, key)) ?? Object.keys(spec.volume).find((key) => key !== "name");
    throw new VolumeError(`volumes of type ${type ?? ""} are not supported`);
  }

  async #perform(
    mounting: MountingPod,
    spec: VolumeSpec,
    { prepared, wantedMs, attempt }: SetUpWork,
    signal: AbortSignal,
  ): Promise<void> {
    const { pod, cause } = mounting;
    const { name, podVolume, mode } = spec;
    const label = labelOf(this.#plugin(spec), spec);
    const { attachments } = this.#deps;
    const wanted = { spec, request: () => this.#attachment(spec, signal) };
    const verify = (): Promise<SetUpAttachment> =>
      attachmentForSetUp(attachments, this.remarks, mounting, wanted, signal);
    const { attached, problem } = await measuredOperation(
      this.#deps,
      "verify_controller_attached_volume",
      label,
      verify,
      signal,
    );
    const action: ActionInput = {
      what: mountStep(spec),
      message: `set up ${prepared.type} volume ${podVolume}`,
      pod: podRef(pod),
      cause,
      data: { volume: podVolume, type: prepared.type, ...(name !== podVolume && { persistentVolume: name }) },
    };
    signal.throwIfAborted();
    attempt.phase = "set-up";
    const setUp = async (): Promise<void> => {
      if (problem !== undefined) throw problem;
      const work = {
        pod: podRef(pod),
        volume: name,
        driver: driverOf(spec, prepared.type),
        operation: "set up",
      } as const;
      const end = this.#deps.waits.begin(work);
      try {
        await this.#mayBeUsed(mounting, spec);
        await prepared.setUp(signal, attached);
        end(true);
      } catch (error) {
        end(!isSilence(error));
        signal.throwIfAborted();
        throw setUpProblem(spec, error);
      }
    };
    const performed = (): Promise<void> => perform(this.#deps.journal, this.#deps.clock, action, setUp);
    await measuredMount(this.#deps, { ...label, mode, wantedMs }, performed, signal);
  }

  #meter(pod: Pod, spec: VolumeSpec, { meter, type }: PreparedVolume): void {
    if (meter === undefined) return;
    const { namespace, name: claim } = spec.claim?.metadata ?? {};
    this.#deps.stats.add({
      pod: podRef(pod),
      podVolume: spec.podVolume,
      name: spec.name,
      driver: driverOf(spec, type),
      claim: namespace === undefined || claim === undefined ? undefined : { namespace, name: claim },
      meter,
    });
  }

  /** Upstream repeats these checks of the scheduler. @throws VolumeOperationError */
  async #mayBeUsed({ pod, paths }: MountingPod, spec: VolumeSpec): Promise<void> {
    const { persistentVolume, name } = spec;
    if (persistentVolume === undefined) return;
    const problem = affinityProblem(persistentVolume, this.#deps.nodeLabels());
    if (problem !== undefined) {
      throw new VolumeOperationError(`${mountStep(spec)}.NodeAffinity check`, name, new Error(problem));
    }
    const hasOptions = spec.mode === "Filesystem" && mountOptionsOf(spec).length > 0;
    if (hasOptions && this.#plugin(spec).supportsMountOptions !== true) {
      const unsupported = new Error("Mount options are not supported for this volume type");
      throw new VolumeOperationError(`${mountStep(spec)}.MountOptionSupport check`, name, unsupported);
    }
    const wait = await this.#otherUse({ pod, paths }, spec);
    if (wait === undefined) return;
    const used = "volume uses the ReadWriteOncePod access mode and is already in use by another pod";
    throw setUpProblem(spec, new AwaitedError(used, wait.until));
  }

  /** Another pod has the volume, which one at a time may use; otherwise this pod has it from now on. */
  async #otherUse(
    { pod, paths }: Pick<KeptPod, "pod" | "paths">,
    spec: VolumeSpec,
  ): Promise<{ readonly until: Promise<void> } | undefined> {
    if (!isExclusive(spec.persistentVolume)) return undefined;
    return await this.#deps.exclusive.take(spec.name, pod.metadata.uid, paths.root, this.#plugin(spec).name);
  }

  async #pause(
    { memory: { retries } }: MountingPod,
    volume: Volume,
    { error, phase, failures }: { readonly error: unknown; readonly phase: SetUpPhase; readonly failures: number },
    signal: AbortSignal,
  ): Promise<void> {
    const isLookedAt = phase === "claim" || !isExternal(volume);
    const pause = {
      failures,
      longestMs: isLookedAt ? longestLookMs : undefined,
      leastMs: causeOf(error, StorageLookupError)?.pauseMs,
      until: causeOf(error, AwaitedError)?.until,
      retries,
    };
    await pauseBeforeRetry(this.#deps.clock, `another try to set up volume ${volume.name}`, pause, signal);
  }
}

/** Sources of PersistentVolumes that no plugin supports. */
const unownedTypes = ["iscsi", "fc", "flexVolume", "cephfs", "rbd", "glusterfs", "quobyte", "storageos", "scaleIO"];
