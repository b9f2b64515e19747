import type { Pod } from "../api/pod.ts";
import type { PersistentVolume } from "../api/persistent-volume.ts";
import type { PersistentVolumeClaim } from "../api/persistent-volume-claim.ts";
import type { Volume } from "../api/volume.ts";
import { errorMessage } from "../base/errors.ts";
import type { StorageLookup } from "../objects/storage-lookup.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import {
  bindingProblem,
  claimProblem,
  claimReference,
  isExclusive,
  modeProblem,
  ownerProblem,
  volumeGroup,
} from "./claims.ts";
import { translatedInline, translatedVolume } from "./in-tree-translation.ts";
import { SELinuxLabelError, volumeLabel } from "./selinux-label.ts";
import type { SELinuxPolicy } from "./selinux-policy.ts";
import { inlineSpec, keptOfClaim, keptOfVolume, type VolumeSpec } from "./volume-spec.ts";
import type { VolumeUse } from "./volume-use.ts";

/** A claim that its pod cannot use yet, in upstream's words. */
export class ClaimError extends VolumeError {}

/** Resolves pods' volumes to their claims and PersistentVolumes. */
export class VolumeSpecs {
  readonly #storage: StorageLookup | undefined;
  readonly #policy: SELinuxPolicy | undefined;

  /**
   * @param storage undefined without a cluster
   * @param policy undefined on a node without SELinux
   */
  constructor(storage: StorageLookup | undefined, policy: SELinuxPolicy | undefined) {
    this.#storage = storage;
    this.#policy = policy;
  }

  /** @throws ClaimError, or the signal's reason */
  async of(pod: Pod, volume: Volume, use: VolumeUse, signal: AbortSignal): Promise<VolumeSpec> {
    const reference = claimReference(pod, volume);
    const { namespace } = pod.metadata;
    if (reference === undefined) return translatedSpec(volume, namespace) ?? inlineSpec(volume);
    const { claimName, readOnly, isEphemeral } = reference;
    const storage = this.#storage;
    if (storage === undefined) throw new ClaimError(`claim ${claimName} needs an API server`);
    const processing = async <T>(work: () => Promise<T>): Promise<T> => {
      try {
        return await work();
      } catch (error) {
        signal.throwIfAborted();
        const message = `error processing PVC ${namespace}/${claimName}: ${errorMessage(error)}`;
        throw new ClaimError(message, { cause: error });
      }
    };
    const claim = await processing(() => usableClaim(storage, namespace, claimName, signal));
    refuse(isEphemeral ? ownerProblem(claim, pod) : undefined);
    const bound = await processing(() => boundVolume(storage, claim, signal));
    const translated = translatedVolume(bound);
    const persistentVolume = keptOfVolume(translated ?? bound);
    const isMigrated = translated !== undefined;
    const { name } = persistentVolume.metadata;
    const group = volumeGroup(bound);
    const mode = persistentVolume.spec.volumeMode ?? "Filesystem";
    refuse(modeProblem(volume.name, mode, use));
    const seLinuxLabel = isExclusive(bound) ? await this.#labelOf(pod, volume) : undefined;
    const kept = { persistentVolume, claim: keptOfClaim(claim), group, seLinuxLabel };
    return { podVolume: volume.name, name, volume, ...kept, readOnly, mode, isMigrated };
  }

  /** As upstream: the pod's containers have to agree, whether the volume's driver asks for the label or not. */
  async #labelOf(pod: Pod, { name }: Volume): Promise<string | undefined> {
    if (this.#policy === undefined) return undefined;
    try {
      return volumeLabel(pod, name, await this.#policy.contexts());
    } catch (error) {
      throw error instanceof SELinuxLabelError ? new ClaimError(error.message, { cause: error }) : error;
    }
  }
}

/** An inline volume of a removed in-tree plugin; undefined: it is not one. @throws VolumeError */
function translatedSpec(volume: Volume, namespace: string): VolumeSpec | undefined {
  const persistentVolume = translatedInline(volume, namespace);
  if (persistentVolume === undefined) return undefined;
  const { readOnly = false } = persistentVolume.spec.csi ?? {};
  const { name } = persistentVolume.metadata;
  const spec = { podVolume: volume.name, name, volume, persistentVolume, readOnly, isMigrated: true };
  return { ...spec, mode: "Filesystem" };
}

async function usableClaim(
  storage: StorageLookup,
  namespace: string,
  name: string,
  signal: AbortSignal,
): Promise<PersistentVolumeClaim> {
  const claim = await storage.claim(namespace, name, signal).catch((error: unknown) => {
    throw new ClaimError(`failed to fetch PVC from API server: ${errorMessage(error)}`, { cause: error });
  });
  refuse(claimProblem(claim));
  return claim;
}

async function boundVolume(
  storage: StorageLookup,
  claim: PersistentVolumeClaim,
  signal: AbortSignal,
): Promise<PersistentVolume> {
  const { volumeName = "" } = claim.spec;
  const volume = await storage.persistentVolume(volumeName, signal).catch((error: unknown) => {
    throw new ClaimError(`failed to fetch PV ${volumeName} from API server: ${errorMessage(error)}`, { cause: error });
  });
  refuse(bindingProblem(volume, claim));
  return volume;
}

/** @throws ClaimError if there is a problem */
function refuse(problem: string | undefined): void {
  if (problem !== undefined) throw new ClaimError(problem);
}
