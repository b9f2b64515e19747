import type { ApiClient } from "../api-client/client.ts";
import { ApiError, askedPauseMs } from "../api-client/api-error.ts";
import {
  type ApiObject,
  decoder,
  type ObjectPlace,
  type ObjectVersion,
  type Resource,
} from "../api-client/resource.ts";
import { PersistentVolume } from "../api/persistent-volume.ts";
import { PersistentVolumeClaim } from "../api/persistent-volume-claim.ts";
import { VolumeAttachment } from "../api/volume-attachment.ts";
import { errorMessage } from "../base/errors.ts";
import { type StorageLookup, StorageLookupError } from "./storage-lookup.ts";

const claims: Resource<PersistentVolumeClaim> = {
  base: "/api/v1",
  plural: "persistentvolumeclaims",
  kind: "PersistentVolumeClaim",
  decode: decoder(PersistentVolumeClaim, "PersistentVolumeClaim"),
};

const persistentVolumes: Resource<PersistentVolume> = {
  base: "/api/v1",
  plural: "persistentvolumes",
  kind: "PersistentVolume",
  decode: decoder(PersistentVolume, "PersistentVolume"),
};

const attachments: Resource<VolumeAttachment> = {
  base: "/apis/storage.k8s.io/v1",
  plural: "volumeattachments",
  kind: "VolumeAttachment",
  decode: decoder(VolumeAttachment, "VolumeAttachment"),
};

/** The objects behind claims, from the API server. */
export class StorageObjects implements StorageLookup {
  readonly #client: Pick<ApiClient, "get" | "getOther" | "patch">;

  constructor(client: Pick<ApiClient, "get" | "getOther" | "patch">) {
    this.#client = client;
  }

  async claim(namespace: string, name: string, signal: AbortSignal): Promise<PersistentVolumeClaim> {
    return await this.#get(claims, { namespace, name }, signal);
  }

  async persistentVolume(name: string, signal: AbortSignal): Promise<PersistentVolume> {
    return await this.#get(persistentVolumes, { name }, signal);
  }

  async changedVolume(name: string, seen: ObjectVersion, signal: AbortSignal): Promise<PersistentVolume | undefined> {
    const call = { lane: "objects", resource: persistentVolumes, place: { name }, signal } as const;
    return await this.#answer(signal, () => this.#client.getOther(call, seen));
  }

  async attachment(name: string, signal: AbortSignal): Promise<VolumeAttachment> {
    return await this.#get(attachments, { name }, signal);
  }

  async patchClaimStatus(
    namespace: string,
    name: string,
    patch: object,
    signal: AbortSignal,
  ): Promise<PersistentVolumeClaim> {
    const place = { namespace, name, subresource: "status" };
    const call = { lane: "objects", resource: claims, place, signal } as const;
    return await this.#answer(signal, () => this.#client.patch(call, "merge", patch));
  }

  async #get<T extends ApiObject>(resource: Resource<T>, place: ObjectPlace, signal: AbortSignal): Promise<T> {
    return await this.#answer(signal, () => this.#client.get({ lane: "objects", resource, place, signal }));
  }

  async #answer<T>(signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      signal.throwIfAborted();
      const message = error instanceof ApiError ? error.answer : errorMessage(error);
      // The node authorizer refuses what it does not know, instead of saying that it is not there.
      const isMissing = error instanceof ApiError && (error.code === 404 || error.code === 403);
      throw new StorageLookupError(message, askedPauseMs(error), { cause: error, isMissing });
    }
  }
}
