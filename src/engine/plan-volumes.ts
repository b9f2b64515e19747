import type { Pod } from "../api/pod.ts";
import type { StorageManifest } from "../api/storage-manifest.ts";
import type { Volume } from "../api/volume.ts";
import type { PodUid } from "../base/ids.ts";
import { placeOf } from "../claims/claim-views.ts";
import type { JournalEntry } from "../journal/entry.ts";
import { awayText } from "../server/away-drivers.ts";
import { othersWithClaim } from "../server/claim-users.ts";
import type { ClaimView, FreeVolumeView, ObjectPlan, PlanStep, PodPlan, PodView } from "../server/local-api.ts";
import { volumeProgress } from "../server/volume-wait.ts";
import { objectKey } from "../sources/run-objects.ts";
import { type ClaimReference, claimReference } from "../volumes/claims.ts";

/** What is known of claims without an API server. */
export interface KnownStorage {
  readonly claims: readonly ClaimView[];
  readonly freeVolumes: readonly FreeVolumeView[];
  /** Documents of the request, and what would become of them. */
  readonly given: readonly StorageManifest[];
  readonly objects: readonly ObjectPlan[];
}

/** The volumes' part of plans. */
export interface VolumePlans {
  /** Of a pod that nothing was done for yet. */
  steps(pod: Pod): PlanStep[];
  /** Of a pod that is being set up: what is left. */
  progress(uid: PodUid): Pick<PodPlan, "steps" | "waits">;
  /** Of a pod that has stopped: what it waits for. */
  held(uid: PodUid): PodPlan["waits"];
}

export const noVolumes: VolumePlans = {
  steps: () => [],
  progress: () => ({ steps: [], waits: [] }),
  held: () => [],
};

interface VolumePlansDependencies {
  /** Undefined: the API server has the claims. */
  readonly storage: KnownStorage | undefined;
  readonly views: readonly PodView[];
  /** By UID, those of the node. */
  readonly pods: ReadonlyMap<PodUid, Pod>;
  /** Of a pod. */
  readonly entries: (uid: PodUid) => readonly JournalEntry[];
  /** Wall-clock milliseconds. */
  readonly now: number;
}

/** Pure if `entries` is. */
export function volumePlans({ storage, views, pods, entries, now }: VolumePlansDependencies): VolumePlans {
  return {
    steps: (pod) => volumeSteps(pod, storage, () => true),
    progress: (uid) => {
      const pod = pods.get(uid);
      const view = views.find((each) => each.uid === uid);
      const { waits, isSetUp } = volumeProgress(entries(uid), (volume) => {
        return view === undefined ? [] : othersWithClaim(view, volume, views);
      });
      const isLeft = (name: string): boolean => !isSetUp(name) && waits.every(({ volume }) => volume !== name);
      return {
        steps: pod === undefined ? [] : volumeSteps(pod, storage, isLeft),
        waits: waits.map(({ text }) => ({ text: `wait: ${text}`, because: [], until: undefined })),
      };
    },
    held: (uid) => {
      const { holdout, awayDrivers = [] } = views.find((view) => view.uid === uid) ?? {};
      if (holdout === undefined) return [];
      const remedy = awayText(awayDrivers, now);
      const text = `wait: ${holdout}${remedy === "" ? "" : `; ${remedy}`}`;
      return [{ text, because: [], until: undefined }];
    },
  };
}

/** A step for each volume of a claim or a CSI driver: the others take no time, and wait for nobody. */
function volumeSteps(pod: Pod, storage: KnownStorage | undefined, isMeant: (volume: string) => boolean): PlanStep[] {
  return (pod.spec.volumes ?? [])
    .filter(({ name }) => isMeant(name))
    .flatMap((volume) => {
      const text = stepOf(pod, volume, storage);
      return text === undefined ? [] : [{ text, because: [] }];
    });
}

function stepOf(pod: Pod, volume: Volume, storage: KnownStorage | undefined): string | undefined {
  if (volume.csi !== undefined) return `publish volume ${volume.name} by driver ${volume.csi.driver}`;
  const reference = claimReference(pod, volume);
  if (reference === undefined) return undefined;
  const key = objectKey({ namespace: pod.metadata.namespace, name: reference.claimName });
  const what = `volume ${volume.name} (claim ${key})`;
  if (storage === undefined) {
    // What is done with it depends on its volume, which is not known here.
    return `set up ${what} once it is bound (and attached, if its driver requires that)`;
  }
  const place = placeOfClaim(key, reference, storage);
  if (place.kind === "none") return `set up ${what} ${place.until}`;
  // A path may have any words, but is absolute.
  return /^volume .* of driver /u.test(place.where)
    ? `stage and publish ${what}: ${place.where}`
    : `mount ${what}: ${place.where}`;
}

type ClaimPlace =
  | { readonly kind: "place"; readonly where: string }
  | { readonly kind: "none"; readonly until: string };

/** What a claim is, or would be, bound to. */
function placeOfClaim(key: string, { isEphemeral }: ClaimReference, storage: KnownStorage): ClaimPlace {
  const unbound = { kind: "none", until: "once the claim is bound" } as const;
  const detail = storage.objects.find((object) => {
    return object.kind === "PersistentVolumeClaim" && objectKey(object) === key;
  })?.detail;
  const kept = storage.claims.find((claim) => objectKey(claim) === key);
  if (detail === undefined || isEphemeral) {
    if (kept?.where !== undefined) return { kind: "place", where: kept.where };
    if (isEphemeral) return { kind: "none", until: "after the claim is created" };
    return kept === undefined ? { kind: "none", until: "once the claim exists" } : unbound;
  }
  if (detail.startsWith("in ")) return { kind: "place", where: detail.slice("in ".length) };
  const given = storage.given.flatMap((object) => {
    return object.kind === "PersistentVolume" ? [{ name: object.metadata.name ?? "", where: placeOf(object) }] : [];
  });
  const volume = [...given, ...storage.freeVolumes].find(({ name }) => detail === `on PersistentVolume ${name}`);
  if (volume !== undefined) return { kind: "place", where: volume.where };
  return kept?.where === undefined ? unbound : { kind: "place", where: kept.where };
}
