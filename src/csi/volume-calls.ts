import type { CsiDriver } from "../api/csi-node.ts";
import type { Pod } from "../api/pod.ts";
import { errorMessage } from "../base/errors.ts";
import type { Cause } from "../journal/entry.ts";
import { type ActionInput, perform } from "../journal/perform.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import { AwaitedError } from "../volumes/awaited-error.ts";
import type { AttachedVolume } from "../volumes/volume-plugin.ts";
import { callSecrets, callTokens } from "./call-inputs.ts";
import type { CsiClient } from "./csi-client.ts";
import { clientProblem, DriverMissingError } from "./driver-store.ts";
import { podInfo, volumeCapability, type VolumeUse } from "./requests.ts";
import { accessModeOf, type CsiSource } from "./source.ts";
import type { CsiVolumeParts } from "./volume-parts.ts";

/** The inputs of a volume's calls that are known before the first one. */
export interface Caller {
  readonly client: CsiClient;
  /** Undefined: the driver has no CSIDriver object. */
  readonly driver: CsiDriver | undefined;
  readonly attached: AttachedVolume | undefined;
  readonly signal: AbortSignal;
}

/** The paths of a publish. */
export interface PublishPaths {
  readonly target: string;
  /** Undefined: nothing is staged. */
  readonly staging: string | undefined;
}

/** A driver's calls for one volume of one pod. */
export class VolumeCalls {
  readonly #parts: CsiVolumeParts;
  readonly #pod: Pod;
  readonly #source: CsiSource;

  constructor(parts: CsiVolumeParts, pod: Pod, source: CsiSource) {
    this.#parts = parts;
    this.#pod = pod;
    this.#source = source;
  }

  /**
   * @param operation upstream's name of the caller: `mounter.SetUpAt`
   * @throws VolumeError while the driver is not registered, or would mount in another kubelet's directories
   */
  async caller(operation: string, attached: AttachedVolume | undefined, signal: AbortSignal): Promise<Caller> {
    const { drivers, objects, place } = this.#parts;
    const { driver: name } = this.#source;
    const owned = place?.problem;
    if (place !== undefined && owned !== undefined) {
      throw new AwaitedError(
        `CSI volumes wait for podwright to be the kubelet of the drivers again: ${owned}`,
        place.taken,
      );
    }
    try {
      const client = drivers.get(name);
      return { client, driver: await objects.get(name, signal), attached, signal };
    } catch (error) {
      signal.throwIfAborted();
      const problem = clientProblem(operation, error);
      if (!(error instanceof DriverMissingError)) throw new VolumeError(problem, { cause: error });
      throw new AwaitedError(problem, drivers.registered(name), { cause: error });
    }
  }

  async stage(
    { client, attached, signal }: Caller,
    { staging, seLinuxLabel }: { readonly staging: string; readonly seLinuxLabel: string | undefined },
  ): Promise<void> {
    const { calls, names } = this.#parts;
    const { handle: volumeId, name, attributes, stageSecret } = this.#source;
    const secrets = await callSecrets(calls, "NodeStageSecretRef", stageSecret, signal);
    const request = {
      volumeId,
      publishContext: { ...attached?.metadata },
      stagingTargetPath: names.toldToDrivers(staging),
      volumeCapability: await this.#capability(client, signal, { seLinuxLabel }),
      secrets,
      volumeContext: attributes,
    };
    signal.throwIfAborted();
    await this.#perform("StageVolume", `stage volume ${name}`, () =>
      client.stage(request, { signal, migrated: this.#source.isMigrated }),
    );
  }

  /**
   * @param paths with the SELinux label to mount it with; undefined: none
   * @param calling called immediately before the driver
   */
  async publish(
    { client, driver, attached, signal }: Caller,
    { target, staging, seLinuxLabel }: PublishPaths & { readonly seLinuxLabel: string | undefined },
    calling: () => void,
  ): Promise<void> {
    const { calls, names } = this.#parts;
    const { handle: volumeId, name, lifecycle, publishSecret, readOnly, attributes, mode } = this.#source;
    const secrets = await callSecrets(calls, "NodePublishSecretRef", publishSecret, signal);
    // As upstream: only file systems get tokens.
    const tokens = mode === "Block" ? {} : await this.#tokens(driver, signal);
    const inSecrets = driver?.spec.serviceAccountTokenInSecrets === true;
    const info = driver?.spec.podInfoOnMount === true ? podInfo(this.#pod, lifecycle) : {};
    const request = {
      volumeId,
      publishContext: { ...attached?.metadata },
      ...(staging !== undefined && { stagingTargetPath: names.toldToDrivers(staging) }),
      targetPath: names.toldToDrivers(target),
      volumeCapability: await this.#capability(client, signal, { seLinuxLabel }),
      readonly: readOnly,
      secrets: { ...secrets, ...(inSecrets && tokens) },
      volumeContext: { ...attributes, ...info, ...(!inSecrets && tokens) },
    };
    signal.throwIfAborted();
    await this.#perform("PublishVolume", `publish volume ${name}`, async () => {
      calling();
      await client.publish(request, { signal, migrated: this.#source.isMigrated });
    });
  }

  /** @param bytes the minimum size of the volume */
  async expand({ client, signal }: Caller, { target, staging }: PublishPaths, bytes: bigint): Promise<void> {
    const { calls, names } = this.#parts;
    const { handle: volumeId, expandSecret, isMigrated } = this.#source;
    const request = {
      volumeId,
      volumePath: names.toldToDrivers(target),
      ...(staging !== undefined && { stagingTargetPath: names.toldToDrivers(staging) }),
      capacityRange: { requiredBytes: bytes },
      volumeCapability: await this.#capability(client, signal, { isForGroup: false }),
      secrets: await callSecrets(calls, "NodeExpandSecretRef", expandSecret, signal),
    };
    await client.expand(request, { signal, migrated: isMigrated });
  }

  async #tokens(driver: CsiDriver | undefined, signal: AbortSignal): Promise<Readonly<Record<string, string>>> {
    try {
      return await callTokens(this.#parts.calls, this.#pod, driver, signal);
    } catch (error) {
      signal.throwIfAborted();
      const why = `failed to get service accoount token attributes: ${errorMessage(error)}`;
      throw new VolumeError(`kubernetes.io/csi: mounter.SetUpAt ${why}`, { cause: error });
    }
  }

  async #capability(
    client: CsiClient,
    signal: AbortSignal,
    { isForGroup = true, seLinuxLabel }: { readonly isForGroup?: boolean; readonly seLinuxLabel?: string | undefined },
  ): Promise<ReturnType<typeof volumeCapability>> {
    const { fsType, mountOptions, mode } = this.#source;
    const knowsSingleWriters = await client.supports("singleNodeMultiWriter", { signal });
    const takesGroup = isForGroup && mode === "Filesystem" && (await client.supports("volumeMountGroup", { signal }));
    const use: VolumeUse = {
      mode,
      accessMode: accessModeOf(this.#source),
      fsType,
      mountOptions,
      seLinuxLabel,
      group: takesGroup ? this.#pod.spec.securityContext?.fsGroup : undefined,
    };
    return volumeCapability(use, knowsSingleWriters, client.accessModes);
  }

  async #perform(what: ActionInput["what"], message: string, call: () => Promise<void>): Promise<void> {
    const { clock, journal } = this.#parts;
    const { namespace, name } = this.#pod.metadata;
    const { name: volume, driver } = this.#source;
    const cause: Cause = { code: "VolumeWanted", message: `pod ${namespace}/${name} uses volume ${volume}` };
    const action: ActionInput = { what, message, pod: podRef(this.#pod), cause, data: { volume, driver } };
    await perform(journal, clock, action, call);
  }
}
