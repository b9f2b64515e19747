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

  async claim(namespace: string, name: string): Promise<PersistentVolumeClaim> {
    this.looks++;
    return found(this.claims.get(`${namespace}/${name}`), "persistentvolumeclaims", name);
  }

  async persistentVolume(name: string): Promise<PersistentVolume> {
    return found(this.volumes.get(name), "persistentvolumes", name);
  }

  async attachment(name: string): Promise<VolumeAttachment> {
    return found(this.attachments.get(name), "volumeattachments.storage.k8s.io", name);
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
  if (object === undefined) throw new StorageLookupError(`${resource} "${name}" not found`, 0);
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
