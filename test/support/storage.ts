import { isVersion, type ObjectVersion } from "../../src/api-client/resource.ts";
import type { PersistentVolume } from "../../src/api/persistent-volume.ts";
import type { PersistentVolumeClaim } from "../../src/api/persistent-volume-claim.ts";
import type { VolumeAttachment } from "../../src/api/volume-attachment.ts";
import { type StorageLookup, StorageLookupError } from "../../src/objects/storage-lookup.ts";

/** What an API server has of the objects behind claims, changed by a test at any time. */
export class TestStorage implements StorageLookup {
  readonly claims = new Map<string, PersistentVolumeClaim>();
  readonly volumes = new Map<string, PersistentVolume>();
  readonly attachments = new Map<string, VolumeAttachment>();
  looks = 0;
  /** Looks at PersistentVolumes that had not changed. */
  unchanged = 0;
  /** Of claims' statuses. */
  readonly patches: object[] = [];

  async claim(namespace: string, name: string): Promise<PersistentVolumeClaim> {
    this.looks++;
    return found(this.claims.get(`${namespace}/${name}`), "persistentvolumeclaims", name);
  }

  async persistentVolume(name: string): Promise<PersistentVolume> {
    return found(this.volumes.get(name), "persistentvolumes", name);
  }

  async changedVolume(name: string, seen: ObjectVersion): Promise<PersistentVolume | undefined> {
    const volume = await this.persistentVolume(name);
    const isSeen = isVersion(volume, seen);
    if (isSeen) this.unchanged++;
    return isSeen ? undefined : volume;
  }

  async attachment(name: string): Promise<VolumeAttachment> {
    return found(this.attachments.get(name), "volumeattachments.storage.k8s.io", name);
  }

  /** As the API server merges it; conditions as a whole. */
  async patchClaimStatus(namespace: string, name: string, patch: object): Promise<PersistentVolumeClaim> {
    const claim = await this.claim(namespace, name);
    const { metadata, status } = patch as Pick<PersistentVolumeClaim, "metadata" | "status">;
    if (metadata.resourceVersion !== claim.metadata.resourceVersion) {
      throw new StorageLookupError("the object has been modified", 0);
    }
    this.patches.push(patch);
    const states = { ...claim.status?.allocatedResourceStatuses, ...status?.allocatedResourceStatuses };
    const kept = Object.entries(states).filter(([, state]) => (state as string | null) !== null);
    const merged = { ...claim.status, ...status, allocatedResourceStatuses: Object.fromEntries(kept) };
    const resourceVersion = String(Number(claim.metadata.resourceVersion ?? "0") + 1);
    const patched = { ...claim, metadata: { ...claim.metadata, resourceVersion }, status: merged };
    this.claims.set(`${namespace}/${name}`, patched);
    return patched;
  }

  /** A claim `ns/<name>` that is bound to a volume `pv-<name>`. */
  bind(name: string, volume: Partial<PersistentVolume["spec"]>): void {
    this.claims.set(`ns/${name}`, boundClaim(name));
    this.volumes.set(`pv-${name}`, {
      metadata: { name: `pv-${name}` },
      spec: { claimRef: { namespace: "ns", name, uid: `uid-${name}` }, ...volume },
    });
  }
}

function found<T>(object: T | undefined, resource: string, name: string): T {
  if (object === undefined) throw new StorageLookupError(`${resource} "${name}" not found`, 0, { isMissing: true });
  return object;
}

export function boundClaim(
  name: string,
  changed: Partial<PersistentVolumeClaim["metadata"]> = {},
): PersistentVolumeClaim {
  return {
    metadata: { name, namespace: "ns", uid: `uid-${name}`, ...changed },
    spec: { volumeName: `pv-${name}` },
    status: { phase: "Bound" },
  };
}
