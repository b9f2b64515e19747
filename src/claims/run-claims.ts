import type { Pod } from "../api/pod.ts";
import type { ObjectVersion } from "../api-client/resource.ts";
import type { PersistentVolume } from "../api/persistent-volume.ts";
import type { PersistentVolumeClaim } from "../api/persistent-volume-claim.ts";
import type {
  ClaimManifest,
  ClassManifest,
  DriverManifest,
  StorageManifest,
  VolumeManifest,
} from "../api/storage-manifest.ts";
import type { VolumeAttachment } from "../api/volume-attachment.ts";
import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import { orAborted } from "../base/abort.ts";
import { Semaphore } from "../base/semaphore.ts";
import { WakeableWait } from "../base/wakeable-wait.ts";
import { randomUuid } from "../base/uuid.ts";
import type { Cause, PodRef, Recorder } from "../journal/entry.ts";
import { perform } from "../journal/perform.ts";
import { type StorageLookup, StorageLookupError } from "../objects/storage-lookup.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { Mounts } from "../ports/mounts.ts";
import type { Random } from "../ports/random.ts";
import type { ClaimRemoval, ClaimView, FreeVolumeView } from "../server/local-api.ts";
import type { Checked } from "../sources/prepare.ts";
import { objectKey } from "../sources/run-objects.ts";
import type { RunStorage, StoragePreview } from "../sources/run-storage.ts";
import type { RunStore } from "../sources/run-store.ts";
import type { ManifestError } from "../yaml/manifest-error.ts";
import { AwaitedError } from "../volumes/awaited-error.ts";
import { bindAll, whyUnbound } from "./bind-all.ts";
import { type Binding, bindClaim } from "./bind.ts";
import { ClaimDirectories } from "./claim-directories.ts";
import { claimObject, deletedClaim, directoryVolume, ephemeralClaim, volumeObject } from "./claim-objects.ts";
import { claimsOf, claimView, freeVolumeViews, placeOf, podsUsing, usersOf } from "./claim-views.ts";
import { hasOwnDirectory, isBound, keptClaim, type KeptClaim, ownerOf, type StorageState } from "./kept-claim.ts";
import { DriverNeed, type RunClaimsDrivers } from "./driver-need.ts";
import { driverObjects, driverSecrets } from "./local-csi.ts";
import { UnreadableClaims } from "./unreadable-claims.ts";
import {
  changedState,
  type ComingChange,
  isKept,
  type KeptObject,
  previewStorage,
  unusedObjects,
  updateProblems,
} from "./storage-changes.ts";

export interface RunClaimsDependencies {
  readonly clock: Clock;
  readonly random: Random;
  readonly files: Files;
  readonly mounts: Pick<Mounts, "below">;
  readonly journal: Recorder;
  readonly log: Logger;
  /** Stores claims, volumes, classes and drivers. */
  readonly store: Pick<RunStore, "load" | "pathOf" | "remove" | "save">;
  /** The desired pods, and those not removed yet. */
  readonly pods: () => readonly Pod[];
  /** Undefined: no CSI drivers. */
  readonly drivers?: RunClaimsDrivers | undefined;
}

export interface RunClaimsConfig {
  /** The directory of claims without a PersistentVolume, `<state>/volumes`. */
  readonly directories: string;
  /** The node's `<root>/pods`, where its pods' claims are mounted. */
  readonly podsDirectory: string;
  readonly nodeLabels: Readonly<Record<string, string>>;
}

/** The interval while nothing is pending. */
const lookMs = 600_000;
const retryMs = 30_000;

/**
 * The claims of `podwright run`, with the volumes and classes of their documents. A claim and its data stay until they
 * are removed by name; the claim of a generic ephemeral volume is removed with its pod.
 */
export class RunClaims implements StorageLookup, RunStorage {
  readonly #deps: RunClaimsDependencies;
  readonly #store: RunClaimsDependencies["store"];
  readonly #directories: ClaimDirectories;
  readonly #nodeLabels: RunClaimsConfig["nodeLabels"];
  /** Serializes changes. */
  readonly #turn = new Semaphore(1);
  readonly #wait: WakeableWait;
  readonly #need: DriverNeed | undefined;
  /** At the next change of the stored objects. */
  #taken = Promise.withResolvers<void>();
  readonly #claims = new Map<string, KeptClaim>();
  readonly #volumes = new Map<string, VolumeManifest>();
  readonly #classes = new Map<string, ClassManifest>();
  readonly #drivers = new Map<string, DriverManifest>();
  /** Claims whose data is being removed. That may take long, so nothing waits for it. */
  readonly #removing = new Set<string>();
  readonly #unreadable = new UnreadableClaims();

  constructor(deps: RunClaimsDependencies, config: RunClaimsConfig) {
    this.#deps = deps;
    this.#wait = new WakeableWait(deps.clock, "pods of ephemeral volumes to go");
    this.#store = deps.store;
    this.#need = deps.drivers && new DriverNeed(deps, deps.drivers.place);
    this.#directories = new ClaimDirectories(deps, config.directories, config.podsDirectory);
    this.#nodeLabels = config.nodeLabels;
  }

  async load(): Promise<readonly string[]> {
    using _turn = await this.#turn.acquire();
    const { objects, problems } = await this.#store.load();
    for (const { manifest } of objects) {
      if (isKept(manifest)) this.#keep(manifest);
    }
    this.#deps.drivers?.objects.set(driverObjects(this.#drivers.values()));
    this.#unreadable.load(problems);
    return this.unreadable;
  }

  get unreadable(): readonly string[] {
    return this.#unreadable.messages;
  }

  problems(objects: readonly Checked<StorageManifest>[]): readonly ManifestError[] {
    return updateProblems(this.#state, objects, this.#removing, this.#directories);
  }

  async prepare(objects: readonly StorageManifest[], pods: readonly Pod[]): Promise<void> {
    await this.#need?.prepare(this.#change(objects, pods));
  }

  async resume(pods: readonly Pod[]): Promise<void> {
    await this.#need?.resume(this.#change([], pods));
  }

  #change(objects: readonly StorageManifest[], pods: readonly Pod[]): ComingChange {
    const replaced = objects.map(({ kind, metadata }) => this.#store.pathOf(kind, objectKey(metadata)));
    const unreadable = this.#unreadable.without(replaced);
    return {
      ...{ state: this.#state, objects, pods },
      newClaim: (given) => keptClaim(given, "new", this.#now()),
      decide: (claim, state) => this.#decide(claim, state, unreadable),
    };
  }

  async take(objects: readonly StorageManifest[], pods: readonly Pod[]): Promise<void> {
    using _turn = await this.#turn.acquire();
    for (const manifest of changedState(this.#state, objects, (given) => this.#newClaim(given)).changed) {
      await this.#store.save(manifest);
      this.#unreadable.replaced(this.#store.pathOf(manifest.kind, objectKey(manifest.metadata)));
      this.#keep(manifest);
    }
    this.#deps.drivers?.objects.set(driverObjects(this.#drivers.values()));
    await this.#bindAll(pods);
    this.#taken.resolve();
    this.#taken = Promise.withResolvers();
  }

  preview(objects: readonly StorageManifest[], pods: readonly Pod[]): StoragePreview {
    return previewStorage(this.#change(objects, pods), this.#directories);
  }

  secrets(): ReadonlySet<string> {
    return driverSecrets(this.#volumes.values());
  }

  async forgetUnused(): Promise<void> {
    using _turn = await this.#turn.acquire();
    for (const { kind, name } of unusedObjects(this.#state)) {
      await this.#store.remove(kind, objectKey({ name }));
      const kept = { PersistentVolume: this.#volumes, CSIDriver: this.#drivers, StorageClass: this.#classes }[kind];
      kept.delete(name);
    }
    this.#deps.drivers?.objects.set(driverObjects(this.#drivers.values()));
  }

  async claim(namespace: string, name: string, signal: AbortSignal): Promise<PersistentVolumeClaim> {
    using _turn = await this.#turn.acquire(signal);
    const key = objectKey({ namespace, name });
    if (!this.#claims.has(key)) await this.#makeEphemeral(namespace, name);
    await this.#bindAll();
    const claim = this.#claims.get(key);
    if (claim !== undefined && this.#removing.has(key)) return deletedClaim(this.#objects(claim).claim, this.#now());
    if (claim !== undefined) return this.#objects(claim).claim;
    const message = `persistentvolumeclaims "${name}" not found; add the PersistentVolumeClaim to the manifests of 'podwright run'`;
    throw new StorageLookupError(message, 0, { cause: new AwaitedError(message, this.#taken.promise) });
  }

  async persistentVolume(name: string, signal: AbortSignal): Promise<PersistentVolume> {
    using _turn = await this.#turn.acquire(signal);
    const claim = [...this.#claims.values()].find((each) => isBound(each) && each.spec.volumeName === name);
    const volume = claim && this.#objects(claim).volume;
    if (claim === undefined || volume === undefined) {
      throw new StorageLookupError(`persistentvolumes "${name}" not found`, 0);
    }
    return volume;
  }

  /** Its objects have no versions. */
  async changedVolume(name: string, _seen: ObjectVersion, signal: AbortSignal): Promise<PersistentVolume> {
    return await this.persistentVolume(name, signal);
  }

  /** Without a cluster nothing is attached. */
  async attachment(name: string): Promise<VolumeAttachment> {
    throw new StorageLookupError(`volumeattachments.storage.k8s.io "${name}" not found`, 0);
  }

  /** Without a cluster nothing is expanded: a claim has the size of its volume. */
  async patchClaimStatus(namespace: string, name: string): Promise<PersistentVolumeClaim> {
    throw new StorageLookupError(`the claim ${namespace}/${name} of podwright run is not expanded`, 0);
  }

  /** The claims, sorted by namespace and name. */
  views(): ClaimView[] {
    const pods = this.#deps.pods();
    return [...this.#claims.values()]
      .toSorted((a, b) => (objectKey(a.metadata) < objectKey(b.metadata) ? -1 : 1))
      .map((claim) => claimView(claim, this.#objects(claim), this.#usersOf(claim, pods)));
  }

  /** The volumes without a bound claim, sorted by name. */
  freeVolumes(): FreeVolumeView[] {
    return freeVolumeViews(this.#state);
  }

  /** Claims that these pods refer to and no document defines, as `namespace/name`. */
  missing(pods: readonly Pod[]): string[] {
    const used = pods.flatMap((pod) => claimsOf(pod));
    return [...new Set(used.filter(({ isEphemeral }) => !isEphemeral).map(({ key }) => key))]
      .filter((key) => !this.#claims.has(key))
      .toSorted();
  }

  /**
   * Removes a claim, and its data if that is in the state directory. The PersistentVolume of a document is forgotten
   * with its claim, but its data stays.
   * @throws PodwrightError if a pod refers to the claim, or if there is none
   */
  async remove(namespace: string, name: string, cause: Cause): Promise<ClaimRemoval> {
    return await this.#remove(await this.#unusedClaim(namespace, name), cause);
  }

  /** Marks the claim as being removed. */
  async #unusedClaim(namespace: string, name: string): Promise<KeptClaim> {
    using _turn = await this.#turn.acquire();
    const key = objectKey({ namespace, name });
    const claim = this.#claims.get(key);
    if (claim === undefined || this.#removing.has(key)) {
      throw new PodwrightError(ExitCode.badInput, `claim ${namespace}/${name} not found`, {
        remedy: `'${this.#directories.command("volumes")}' lists the claims`,
      });
    }
    const using = this.#usersOf(claim, this.#deps.pods()).map((pod) => `${pod.namespace}/${pod.name}`);
    const users = [...new Set(using)];
    if (users.length > 0) {
      throw new PodwrightError(ExitCode.failed, `claim ${namespace}/${name} is used by ${users.join(", ")}`, {
        remedy: `'${this.#directories.command("stop", ...users)}' first`,
      });
    }
    this.#removing.add(key);
    return claim;
  }

  /** A removed pod's ephemeral claims are removed by {@link run}. */
  podGone(): void {
    this.#wait.wake();
  }

  /**
   * Removes the claims of removed pods' ephemeral volumes, until the signal aborts. Never rejects.
   * @param known resolves once all pods are known: before, no pod counts as removed
   */
  async run(known: Promise<void>, signal: AbortSignal): Promise<void> {
    await orAborted(known, signal);
    while (!signal.aborted) {
      const isDone = await this.removeOrphans();
      await this.#wait.for(isDone ? lookMs : retryMs, signal);
    }
  }

  /** Removes the claims of removed pods' ephemeral volumes; false: some could not be removed. Never rejects. */
  async removeOrphans(): Promise<boolean> {
    let isDone = true;
    for (const claim of await this.#orphans()) {
      const cause: Cause = { code: "PodOfClaimGone", message: "the pod of the ephemeral volume is gone" };
      await this.#remove(claim, cause).catch((error: unknown) => {
        isDone = false;
        const { namespace, name } = claim.metadata;
        this.#deps.log.warn("cannot remove a claim", { namespace, claim: name, error: errorMessage(error) });
      });
    }
    return isDone;
  }

  /** Marks them as being removed. */
  async #orphans(): Promise<KeptClaim[]> {
    using _turn = await this.#turn.acquire();
    const pods = this.#deps.pods();
    const present = new Set(pods.map(({ metadata }) => String(metadata.uid)));
    const orphans: KeptClaim[] = [];
    for (const [key, claim] of this.#claims) {
      const owner = ownerOf(claim);
      if (owner === undefined || present.has(owner)) continue;
      if (this.#removing.has(key) || podsUsing(claim, pods).length > 0) continue;
      this.#removing.add(key);
      orphans.push(claim);
    }
    return orphans;
  }

  async #remove(claim: KeptClaim, cause: Cause): Promise<ClaimRemoval> {
    const { journal, clock } = this.#deps;
    const { namespace, name } = claim.metadata;
    const volume = this.#volumes.get(claim.spec.volumeName ?? "");
    // Earlier versions also kept a document of the volume of the claim's own directory.
    const isElsewhere = volume !== undefined && !hasOwnDirectory(claim);
    const left = isBound(claim) && isElsewhere ? placeOf(volume) : undefined;
    const message = `remove claim ${namespace}/${name}${left === undefined ? "" : `, but not its data in ${left}`}`;
    await perform(journal, clock, { what: "RemoveClaim", message, cause }, async () => {
      // Data first: a later claim of this name must not find any.
      if (!isElsewhere) await this.#directories.remove(claim);
      using _turn = await this.#turn.acquire();
      await this.#store.remove("PersistentVolumeClaim", objectKey(claim.metadata));
      this.#claims.delete(objectKey(claim.metadata));
      if (volume === undefined || !isBound(claim)) return;
      await this.#store.remove("PersistentVolume", objectKey(volume.metadata));
      this.#volumes.delete(volume.metadata.name ?? "");
    }).finally(() => this.#removing.delete(objectKey(claim.metadata)));
    return { namespace, name, left };
  }

  #usersOf(claim: KeptClaim, pods: readonly Pod[]): PodRef[] {
    return usersOf(claim, this.#directories.path(claim), this.#state, pods);
  }

  get #state() {
    const [claims, volumes, classes, drivers] = [this.#claims, this.#volumes, this.#classes, this.#drivers];
    return { claims, volumes, classes, drivers, nodeLabels: this.#nodeLabels };
  }

  /** The claim of a generic ephemeral volume, which upstream's controller creates for the pod. */
  async #makeEphemeral(namespace: string, name: string): Promise<void> {
    const found = ephemeralClaim(this.#deps.pods(), namespace, name);
    if (found === undefined) return;
    const claim = this.#newClaim(found.manifest, [found.owner]);
    await this.#store.save(claim);
    this.#keep(claim);
  }

  /** @param coming pods that are not desired yet */
  async #bindAll(coming: readonly Pod[] = []): Promise<void> {
    const { bound } = bindAll(this.#state, (claim, state) => this.#decide(claim, state));
    for (const { claim, binding } of bound) {
      const to =
        binding.kind === "directory" ? await this.#directories.ensure(claim) : `PersistentVolume ${binding.name}`;
      await this.#store.save(claim);
      this.#keep(claim);
      const { namespace, name } = claim.metadata;
      const [pod] = podsUsing(claim, [...this.#deps.pods(), ...coming]);
      const message = `claim ${namespace}/${name} is bound to ${to}`;
      this.#deps.journal.record({ kind: "note", what: "ClaimBound", message, ...(pod && { pod }) });
    }
  }

  #decide(claim: KeptClaim, state: StorageState, unreadable = this.#unreadable): Binding {
    if (this.#removing.has(objectKey(claim.metadata))) return { kind: "none", why: "the claim is being removed" };
    return unreadable.allowed(claim, bindClaim(claim, state));
  }

  #objects(claim: KeptClaim): { readonly claim: PersistentVolumeClaim; readonly volume: PersistentVolume | undefined } {
    if (!isBound(claim)) {
      const why = whyUnbound(this.#decide(claim, this.#state));
      return { claim: claimObject(claim, undefined, why), volume: undefined };
    }
    const given = this.#volumes.get(claim.spec.volumeName ?? "");
    const own = hasOwnDirectory(claim) ? directoryVolume(claim, this.#directories.path(claim)) : undefined;
    const volume = own ?? (given && volumeObject(given, claim));
    return { claim: claimObject(claim, volume), volume };
  }

  #keep(manifest: KeptObject): void {
    if (manifest.kind === "PersistentVolumeClaim") this.#claims.set(objectKey(manifest.metadata), manifest);
    else if (manifest.kind === "PersistentVolume") this.#volumes.set(manifest.metadata.name ?? "", manifest);
    else if (manifest.kind === "StorageClass") this.#classes.set(manifest.metadata.name ?? "", manifest);
    else this.#drivers.set(manifest.metadata.name ?? "", manifest);
  }

  #newClaim(manifest: ClaimManifest, owners?: KeptClaim["metadata"]["ownerReferences"]): KeptClaim {
    return keptClaim(manifest, randomUuid(this.#deps.random), this.#now(), owners);
  }

  #now(): string {
    return `${new Date(this.#deps.clock.now()).toISOString().slice(0, 19)}Z`;
  }
}
