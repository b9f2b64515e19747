import assert from "node:assert/strict";
import type { CsiDriver } from "../../src/api/csi-node.ts";
import type { Pod } from "../../src/api/pod.ts";
import type { StorageManifest } from "../../src/api/storage-manifest.ts";
import type { Volume } from "../../src/api/volume.ts";
import { podUid } from "../../src/base/ids.ts";
import { RunClaims } from "../../src/claims/run-claims.ts";
import { MemoryFiles } from "../../src/sim/files.ts";
import { SimMounts } from "../../src/sim/machine.ts";
import { decodeManifests } from "../../src/sources/decode.ts";
import { prepareManifests } from "../../src/sources/prepare.ts";
import { RunStore } from "../../src/sources/run-store.ts";
import { ManualClock } from "./manual-clock.ts";
import { MemoryRecorder } from "./sources.ts";
import { toldLog } from "./told-log.ts";

export const never = AbortSignal.any([]);
export const asked = { code: "ClaimRemovalRequested", message: "asked" } as const;
export const size = "resources: {requests: {storage: 1Gi}}";
export const dataClaim = `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], ${size}}}`;
export const disk = `{apiVersion: v1, kind: PersistentVolume, metadata: {name: disk},
  spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, local: {path: /srv/disk}}}`;

/** A state directory with its claims, over restarts. */
export class RunClaimsScene {
  readonly clock = new ManualClock();
  readonly files = new MemoryFiles(this.clock);
  readonly mounts = new SimMounts();
  readonly journal = new MemoryRecorder();
  readonly logged: string[] = [];
  readonly log = toldLog(this.logged);
  #drawn = 0;
  readonly random = { uniform: () => 0, bytes: (count: number) => new Uint8Array(count).fill(++this.#drawn) };
  present: Pod[] = [];
  readonly pods = (): readonly Pod[] => this.present;
  readonly told: string[] = [];
  taken = 0;
  needed = 0;
  /** Why the drivers' place cannot be taken. */
  obstacle: Error | undefined;
  /** An earlier engine has left its directories there. */
  isShown = false;
  readonly drivers = {
    objects: {
      set: (all: readonly CsiDriver[]) => void this.told.push(all.map(({ metadata }) => metadata.name).join()),
    },
    place: {
      take: async () => {
        if (this.obstacle !== undefined) throw this.obstacle;
        return this.taken++ === 0;
      },
      need: () => void this.needed++,
      isShown: async () => this.isShown,
    },
  };
  claims = this.#open();

  #open(): RunClaims {
    const { clock, files, mounts, journal, log, random, pods, drivers } = this;
    const store = new RunStore(files, "/state/claims");
    return new RunClaims(
      { clock, files, mounts, journal, log, random, pods, drivers, store },
      {
        directories: "/state/volumes",
        podsDirectory: "/state/kubelet/pods",
        nodeLabels: { "kubernetes.io/hostname": "here" },
      },
    );
  }

  /** A node that has just been started for the first time. */
  static async started(): Promise<RunClaimsScene> {
    const fixture = new RunClaimsScene();
    assert.deepEqual(await fixture.claims.load(), []);
    return fixture;
  }

  async restart(): Promise<readonly string[]> {
    this.claims = this.#open();
    return await this.claims.load();
  }

  checked(...texts: string[]): readonly { readonly manifest: StorageManifest; readonly origin: never }[] {
    const { objects, errors } = decodeManifests(new TextEncoder().encode(texts.join("\n---\n")), "f");
    const prepared = prepareManifests(objects);
    assert.deepEqual([...errors, ...prepared.errors], []);
    return prepared.storage as ReturnType<RunClaimsScene["checked"]>;
  }

  async take(...texts: string[]): Promise<void> {
    const checked = this.checked(...texts);
    assert.deepEqual(this.claims.problems(checked), []);
    await this.claims.take(
      checked.map(({ manifest }) => manifest),
      [],
    );
  }

  problems(...texts: string[]): string[] {
    return this.claims.problems(this.checked(...texts)).map(({ message }) => message);
  }

  /** Where a bound claim's data is. */
  async path(name: string): Promise<string | undefined> {
    const { spec } = await this.claims.claim("default", name, never);
    const volume = await this.claims.persistentVolume(spec.volumeName ?? "", never);
    return (volume.spec.local ?? volume.spec.hostPath)?.path;
  }
}

export function pod(name: string, volume: Partial<Volume>, uid = `uid-${name}`): Pod {
  const metadata = { name, namespace: "default", uid: podUid(uid) };
  return { metadata, spec: { containers: [], volumes: [{ name: "scratch", ...volume }] } };
}
export const using = (claimName: string): Pod => pod("web", { persistentVolumeClaim: { claimName } });
export const template = {
  volumeClaimTemplate: { spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Mi" } } } },
};
