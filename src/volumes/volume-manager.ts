import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import type { Volume } from "../api/volume.ts";
import { DeadlineError, withDeadline } from "../base/deadline.ts";
import type { PodUid } from "../base/ids.ts";
import { bothEnded } from "../base/side-by-side.ts";
import type { Cause, PodRef, Recorder } from "../journal/entry.ts";
import { type ActionInput, perform } from "../journal/perform.ts";
import type { NodeVolumes } from "../node/node-volumes.ts";
import type { StorageLookup } from "../objects/storage-lookup.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { Mounts } from "../ports/mounts.ts";
import type { VolumeFiles } from "../ports/volume-files.ts";
import type { Mount } from "../runtime/config/container-config.ts";
import type { VolumeProvider } from "../runtime/providers.ts";
import type { MountedVolume, MountedVolumes } from "../runtime/config/mounted-volumes.ts";
import type { EnvironmentVariable, NeededObjects, ObjectLookup } from "../runtime/config/environment.ts";
import type { NodeContext } from "../runtime/node-context.ts";
import { type Rejection, rejection } from "../pods/rejection.ts";
import type { PodHolding, Release } from "../runtime/pod-holdings.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { AttachLimitError, Attachments } from "./attachments.ts";
import { ContainerMounts, type ContainerMountsDependencies } from "./container-mounts.ts";
import { ExclusiveVolumes } from "./exclusive-volumes.ts";
import { MountProgress } from "./mount-progress.ts";
import { newPodMemory, type PodMemory } from "./pod-memory.ts";
import { PodSetUp, setUpAll, SetUpCanceled } from "./pod-set-up.ts";
import { SELinuxPolicy } from "./selinux-policy.ts";
import type { StorageWaits } from "./storage-waits.ts";
import { UnownedVolumes, type VolumesLeft } from "./unowned-volumes.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import { VolumePaths } from "./volume-paths.ts";
import type { OperationObserver } from "./volume-operations.ts";
import type { VolumePlugin } from "./volume-plugin.ts";
import { VolumeContents } from "./volume-contents.ts";
import { isExternal, type MountingPod, VolumeSetUp } from "./volume-set-up.ts";
import { inlineSpec } from "./volume-spec.ts";
import type { VolumeStats } from "./volume-stats.ts";
import { untilEnded } from "./until-ended.ts";
import { VolumeUpkeeps } from "./volume-upkeeps.ts";
import { VolumeSpecs } from "./volume-specs.ts";
import { type VolumeUse, volumeUse } from "./volume-use.ts";
import { keysOf, type UnownedVolume, type VolumesOfPod, VolumesOnDisk } from "./volumes-on-disk.ts";

export interface VolumeDependencies {
  readonly clock: Clock;
  readonly files: Files;
  readonly volumeFiles: VolumeFiles;
  readonly mounts: Mounts;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly objects: ObjectLookup;
  readonly node: Pick<NodeContext, "rootDirectory" | "seLinux">;
  /** The first plugin that owns a volume is responsible for it. */
  readonly plugins: readonly VolumePlugin[];
  readonly features: ContainerMountsDependencies["features"];
  /** Undefined on a node that is in no cluster. */
  readonly cluster?: ClusterVolumes | undefined;
  readonly observer?: OperationObserver;
  readonly stats: Pick<VolumeStats, "add" | "forget">;
  readonly waits: Pick<StorageWaits, "begin" | "forget" | "attempts">;
}

/** What a cluster node knows about volumes beyond its pods; `podwright run` takes it from documents. */
export interface ClusterVolumes {
  readonly storage: StorageLookup;
  readonly node: NodeVolumes;
  /** Of the Node; undefined: not known yet. */
  readonly labels: () => Readonly<Record<string, string>> | undefined;
  /** enableControllerAttachDetach. */
  readonly byController: boolean;
}

/** Time limit for a pod's volumes before the missing ones are reported. */
const mountLimitMs = 123_000;

/**
 * Manages pod volumes: sets them up before containers start, updates their content with the objects, and tears them
 * down. Level-triggered: correct volumes are left alone, whoever made them, and what an earlier run left half-done is
 * completed.
 */
export class VolumeManager implements VolumeProvider, PodHolding {
  readonly name = "volumes";
  readonly until = "ended";
  readonly #deps: VolumeDependencies;
  readonly #pods = new Map<PodUid, PodMemory>();
  readonly #containerMounts: ContainerMounts;
  readonly #onDisk: VolumesOnDisk;
  readonly #unowned: UnownedVolumes;
  readonly #setUp: VolumeSetUp;
  readonly #exclusive: ExclusiveVolumes;
  readonly #upkeeps: VolumeUpkeeps;
  readonly #contents: VolumeContents;
  #reject: ((pod: Pod, rejection: Rejection, entry: number) => void) | undefined;
  /** The real path of the node's root directory, constant while podwright runs. */
  #root: string | undefined;

  constructor(deps: VolumeDependencies) {
    this.#deps = deps;
    this.#containerMounts = new ContainerMounts(deps);
    this.#onDisk = new VolumesOnDisk({ ...deps, gone: (uid, key) => this.#exclusive.release(uid, key) });
    this.#unowned = new UnownedVolumes(deps.journal, deps.log);
    const { clock, files, mounts, journal, plugins, cluster, stats, waits } = deps;
    const isLeft = (uid: string): boolean => this.left.some(({ pod }) => pod.uid === uid);
    this.#exclusive = new ExclusiveVolumes({ files, mounts, isLeft });
    this.#setUp = new VolumeSetUp({
      clock,
      journal,
      plugins,
      specs: new VolumeSpecs(cluster?.storage, deps.node.seLinux ? new SELinuxPolicy(files) : undefined),
      exclusive: this.#exclusive,
      attachments: cluster && new Attachments({ clock, ...cluster }),
      nodeLabels: () => cluster?.labels(),
      observer: deps.observer,
      stats,
      waits,
    });
    this.#upkeeps = new VolumeUpkeeps(deps, this.#setUp);
    this.#contents = new VolumeContents(deps, this.#setUp);
  }

  async mount(pod: Pod, needs: NeededObjects, cause: Cause, signal: AbortSignal): Promise<MountedVolumes> {
    const { clock, objects } = this.#deps;
    const { namespace, name, uid } = pod.metadata;
    const use = volumeUse(pod);
    const used = usedVolumes(pod, use);
    if (used.length === 0) {
      await objects.settle?.(pod, needs, signal);
      return new Map();
    }
    let progress = new MountProgress(used.map((volume) => volume.name));
    try {
      return await withDeadline(clock, `volumes of pod ${namespace}/${name}`, mountLimitMs, signal, async (limited) => {
        const [paths] = await bothEnded(this.#layOut(uid, limited), this.#settle(pod, needs, used, limited));
        for (;;) {
          limited.throwIfAborted();
          const memory = this.#memoryOf(uid);
          const joins = memory.underWay?.isCanceled === false;
          const setUp = this.#underWay({ pod, use, used, paths, cause, progress, memory }, memory);
          ({ progress } = setUp.mounting);
          if (joins) await this.#renewContent(setUp.mounting, limited);
          const mounted = await setUp.wait(signal, limited);
          if (setUp.isOf(used)) return mounted;
          progress = new MountProgress(used.map((volume) => volume.name));
        }
      });
    } catch (error) {
      if (!(error instanceof DeadlineError)) throw error;
      const because = progress.problems.length > 0 ? progress.problems.join("; ") : error.message;
      throw new VolumeError(`unable to attach or mount volumes: ${progress.text(because)}`);
    }
  }

  /** What was set up early gets the present content, although other volumes are still being set up. */
  async #renewContent({ pod, used, paths, memory, cause, progress }: MountingPod, signal: AbortSignal): Promise<void> {
    const early = used
      .filter(({ name }) => !progress.isMissing(name))
      .filter((volume) => this.#contents.follows(volume));
    const known = this.#pods.get(pod.metadata.uid);
    if (known === memory) await this.#contents.refresh({ pod, paths, memory: known }, early, cause, signal);
  }

  retryNow({ uid }: PodRef): void {
    this.#pods.get(uid)?.retries.emit();
  }

  /** @param reject terminates a pod that the node cannot run after all */
  connect(reject: (pod: Pod, rejection: Rejection, entry: number) => void): void {
    this.#reject = reject;
  }

  #exceedsLimit(pod: Pod, error: AttachLimitError, cause: Cause): void {
    const what = "VolumeAttachmentLimitExceeded";
    const refusal = rejection(what, `Node has reached its volume attachment limit, rejecting pod. ${error.message}`);
    const { message } = refusal;
    const entry = this.#deps.journal.record({ kind: "decision", what, message, pod: podRef(pod), cause });
    this.#reject?.(pod, refusal, entry);
  }

  async readFile(volume: MountedVolume, path: string, maxBytes: number): Promise<Uint8Array | undefined> {
    return await this.#deps.volumeFiles.readBeneath(volume.hostPath, path, maxBytes);
  }

  async mountsFor(
    pod: Pod,
    container: Container,
    environment: readonly EnvironmentVariable[],
    mounted: MountedVolumes,
    signal: AbortSignal,
  ): Promise<Mount[]> {
    if ((container.volumeMounts ?? []).length === 0) return [];
    const { uid } = pod.metadata;
    const starting = { pod, container, environment, mounted };
    return await this.#containerMounts.of(starting, await this.#pathsOf(uid), this.#memoryOf(uid).turn, signal);
  }

  async refresh(pod: Pod, cause: Cause, signal: AbortSignal): Promise<boolean> {
    const use = volumeUse(pod);
    const used = usedVolumes(pod, use);
    const following = used.filter((volume) => this.#contents.follows(volume));
    const external = used.filter(isExternal);
    if (following.length + external.length === 0) return true;
    const memory = this.#memoryOf(pod.metadata.uid);
    // Volumes being set up get the current objects; containers start afterwards, and the change is then synced. A set-up
    // that goes on holds the turn for moments only, and has set up early what is refreshed here.
    if (memory.underWay === undefined && memory.turn.load.held > 0) return true;
    const paths = await this.#pathsOf(pod.metadata.uid);
    // Those being set up need none yet.
    const setUp = external.filter(({ name }) => memory.underWay?.mounting.progress.isMissing(name) !== true);
    this.#upkeeps.begin({ pod, use, paths, memory }, setUp);
    if (following.length === 0) return true;
    this.#deps.objects.renew?.(pod);
    return await this.#contents.refresh({ pod, paths, memory }, following, cause, signal);
  }

  /**
   * Tears down the pod's volumes as found on the node; those that no plugin owns stay, and are reported. As in upstream, a
   * driver's call for one of them comes to its end before.
   */
  async release(pod: PodRef, { cause }: Pick<Release, "cause">, signal: AbortSignal): Promise<void> {
    const memory = this.#memoryOf(pod.uid);
    memory.underWay?.cancel(new SetUpCanceled("the pod's volumes are being removed"));
    await this.#upkeeps.stop(pod.uid);
    memory.upkeeps.clear();
    using _setUps = await memory.setUps.acquire(signal);
    using _turn = await memory.turn.acquire(signal);
    this.#deps.stats.forget(pod.uid);
    this.#containerMounts.forget(pod.uid);
    this.#deps.waits.forget(pod.uid, ["set up", "keep up"]);
    for (const plugin of this.#deps.plugins) plugin.forget?.(pod.uid);
    const paths = await this.#pathsOf(pod.uid);
    const found = await this.#onDisk.find(paths);
    // What is not on the node waits for no other volume's teardown.
    const keys = keysOf(found);
    this.#exclusive.releaseAll(pod.uid, keys);
    for (const plugin of this.#deps.plugins) plugin.setUpsEnded?.(pod.uid, keys);
    await this.#tearDown(pod, paths, found, cause, signal);
    this.#unowned.report(pod, paths, staying(found));
    this.#deps.waits.forget(pod.uid, ["tear down"]);
    this.#exclusive.releaseAll(pod.uid);
    this.#deps.cluster?.node.releaseAll(pod.uid);
    const isWanted = memory.turn.load.waiting + memory.setUps.load.waiting > 0;
    if (this.#pods.get(pod.uid) === memory && !isWanted) this.#pods.delete(pod.uid);
  }

  /** Podwright is stopping: work on volumes has not failed, even if a driver's call was canceled under it. */
  cancel(reason = new SetUpCanceled("podwright is stopping")): void {
    for (const { underWay } of this.#pods.values()) underWay?.cancel(reason);
    this.#upkeeps.cancel(reason);
  }

  /** Ends the work on volumes, which stay as they are. */
  async close(): Promise<void> {
    this.cancel();
    const setUps = [...this.#pods.values()].map((memory) => memory.setUps);
    await untilEnded(this.#deps, this.#upkeeps.close(), setUps);
  }

  /** Upstream's full names of the plugins of a pod's volumes: of a claim's once its volume is known. */
  pluginLabels(pod: Pod): string[] {
    const specs = this.#pods.get(pod.metadata.uid)?.specs;
    return usedVolumes(pod, volumeUse(pod)).flatMap((volume) => {
      return this.#setUp.labelOf(specs?.get(volume.name) ?? inlineSpec(volume))?.plugin ?? [];
    });
  }

  /** Volumes that no plugin owns, in the directories of pods that have ended. */
  get left(): readonly VolumesLeft[] {
    return this.#unowned.left;
  }

  /** Whether the pod's directory holds volumes that no plugin owns: it must then be kept. */
  async keeps(uid: PodUid): Promise<boolean> {
    return staying(await this.#onDisk.find(await this.#pathsOf(uid))).length > 0;
  }

  async #tearDown(
    pod: PodRef,
    paths: VolumePaths,
    found: VolumesOfPod,
    cause: Cause,
    signal: AbortSignal,
  ): Promise<void> {
    const { owned, subPaths, parents, memories } = found;
    const empty = found.unowned.filter(({ isEmpty }) => isEmpty);
    const names = new Set([...owned.map(({ name }) => name), ...empty.map(({ place }) => place)]);
    if (owned.length + empty.length + parents.length + memories.length === 0 && !subPaths.isThere) return;
    const message = names.size === 0 ? "remove leftover volumes" : `remove volumes ${[...names].join(", ")}`;
    const mounts = subPaths.mounts.length + owned.reduce((count, volume) => count + volume.mounts.length, 0);
    const action: ActionInput = { what: "UnmountVolumes", message, pod, cause, data: { mounts } };
    await perform(this.#deps.journal, this.#deps.clock, action, () => this.#onDisk.tearDown(pod, paths, found, signal));
  }

  /**
   * Waits for the objects that the start and new volumes need. Existing content is good enough for a restarted
   * container, especially without the API server; changes come with a refresh.
   */
  async #settle(pod: Pod, needs: NeededObjects, used: readonly Volume[], signal: AbortSignal): Promise<void> {
    const { objects } = this.#deps;
    if (objects.settle === undefined) return;
    const paths = await this.#pathsOf(pod.metadata.uid);
    const empty: Volume[] = [];
    for (const volume of used) {
      if (!(await this.#holdsContent(pod, volume, paths))) empty.push(volume);
    }
    const volumes = needs.spec.volumes === undefined ? empty : used;
    await objects.settle(pod, { ...needs, spec: { ...needs.spec, volumes: [...volumes] }, tokensOf: empty }, signal);
  }

  async #holdsContent(pod: Pod, volume: Volume, paths: VolumePaths): Promise<boolean> {
    if (isExternal(volume)) return true;
    try {
      return (await this.#setUp.prepare(pod, inlineSpec(volume), paths).content?.isThere()) ?? true;
    } catch {
      // Setting it up reports what is wrong.
      return false;
    }
  }

  async #layOut(uid: PodUid, signal: AbortSignal): Promise<VolumePaths> {
    const { files } = this.#deps;
    const memory = this.#memoryOf(uid);
    const paths = await this.#pathsOf(uid);
    // The set-up under way has them.
    if (memory.underWay?.isCanceled === false) return paths;
    using _turn = await memory.turn.acquire(signal);
    await files.makeDirectory(paths.pod, 0o750);
    await bothEnded(files.makeDirectory(paths.volumes, 0o750), files.makeDirectory(paths.plugins, 0o750));
    return paths;
  }

  /** The set-up of the pod's volumes under way, or a new one. */
  #underWay(mounting: MountingPod, memory: PodMemory): PodSetUp {
    const { underWay } = memory;
    if (underWay?.isCanceled === false) {
      if (underWay.isAwaited) return underWay;
      underWay.isFor(mounting.pod, mounting.cause);
      this.#setUp.remarks.again(underWay.mounting);
      return underWay;
    }
    const begun = new PodSetUp(mounting, async (own, signal) => {
      try {
        using _setUps = await memory.setUps.acquire(signal);
        return await setUpAll(this.#setUp, own, memory.turn, signal);
      } catch (error) {
        if (error instanceof AttachLimitError) this.#exceedsLimit(own.pod, error, own.cause);
        throw error;
      } finally {
        if (memory.underWay === begun) memory.underWay = undefined;
      }
    });
    memory.underWay = begun;
    return begun;
  }

  /** The mount table has real paths, so they are used everywhere. */
  async #pathsOf(uid: PodUid): Promise<VolumePaths> {
    const { files, node } = this.#deps;
    if (this.#root === undefined) {
      await files.makeDirectory(node.rootDirectory, 0o750);
      this.#root = await files.realPath(node.rootDirectory);
    }
    return new VolumePaths(this.#root, uid);
  }

  #memoryOf(uid: PodUid): PodMemory {
    const known = this.#pods.get(uid);
    if (known !== undefined) return known;
    const memory = newPodMemory();
    this.#pods.set(uid, memory);
    return memory;
  }
}

function usedVolumes({ spec }: Pod, { mounted, mapped }: VolumeUse): Volume[] {
  return (spec.volumes ?? []).filter(({ name }) => mounted.has(name) || mapped.has(name));
}

function staying({ unowned }: VolumesOfPod): readonly UnownedVolume[] {
  return unowned.filter(({ isEmpty }) => !isEmpty);
}
