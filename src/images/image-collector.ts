import { errorMessage } from "../base/errors.ts";
import { formatGoDuration } from "../base/go-duration.ts";
import { Semaphore } from "../base/semaphore.ts";
import type { Cause, Recorder } from "../journal/entry.ts";
import { perform } from "../journal/perform.ts";
import type { Clock } from "../ports/clock.ts";
import type { CriImageService, CriRuntimeService } from "../ports/cri.ts";
import type { Container, Image } from "../ports/gen/runtime/v1/api_pb.js";
import type { Logger } from "../ports/log.ts";
import type { ImageAccess } from "./image-access.ts";
import type { ImageFileSystem } from "./image-file-system.ts";
import {
  bytesAbove,
  type FileSystemRoom,
  formatSize,
  holdSummary,
  type ImageGarbagePolicy,
  type ImageVerdicts,
  judgeImages,
  type KnownImage,
  type Shortage,
  shortageOf,
} from "./image-garbage.ts";
import type { ImageLeases, ImageSurvey } from "./image-leases.ts";
import type { ImageUses } from "./image-uses.ts";
import { imagesInUse, knownImages, type OwnerLabels, type WantedImages } from "./known-images.ts";
import { mountedImages } from "./mounted-images.ts";
import { sandboxImage } from "./sandbox-image.ts";

export interface ImageCollectorDependencies {
  readonly clock: Clock;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly images: Pick<CriImageService, "listImages" | "imageStatus" | "removeImage">;
  readonly runtime: Pick<CriRuntimeService, "listContainers" | "containerStatus" | "status">;
  readonly fileSystem: ImageFileSystem;
  readonly uses: ImageUses;
  readonly labels: OwnerLabels;
}

export interface ImageCollectorConfig extends ImageGarbagePolicy {
  /** Keep images that podwright did not pull, according to its pull records. */
  readonly onlyPulled: boolean;
}

/** The kubelet's part of a collection. */
export interface ImageServices {
  readonly leases: Pick<ImageLeases, "survey" | "onEnd">;
  readonly access: Pick<ImageAccess, "isPulled" | "prune">;
  /** True once it is known which pods are desired, and which the runtime has. */
  readonly ready: () => boolean;
  /** The images of every admitted pod that has not ended. */
  readonly wanted: () => readonly WantedImages[];
  /** Those of the containers that may have images as volumes. */
  readonly mayMount: (containers: readonly Container[]) => readonly Container[];
}

/** The result of a collection. */
export interface ImagesFreed {
  readonly removed: readonly KnownImage[];
  /** The increase of free space; 0 if it shrank or is unknown. */
  readonly freedBytes: number;
  /** `sha256:…: the message`. */
  readonly failures: readonly string[];
  readonly held: ImageVerdicts["held"];
}

interface Pass {
  readonly survey: ImageSurvey;
  readonly verdicts: ImageVerdicts;
  readonly signal: AbortSignal;
  readonly removed: KnownImage[];
  readonly failures: string[];
}

/** The label `reason` of kubelet_image_garbage_collected_total. */
type Reason = "age" | "space";

/** As upstream (ImageGCPeriod). */
const periodMs = 300_000;
const untilReadyMs = 5000;
const timeoutMs = 60_000;

/** Removes unused images: when their file system fills up, when they are too old, and on request. */
export class ImageCollector {
  readonly #deps: ImageCollectorDependencies;
  readonly #config: ImageCollectorConfig;
  /** Serializes collections. */
  readonly #turn = new Semaphore(1);
  readonly #services = Promise.withResolvers<ImageServices>();
  #beganMs: number;
  #failedBefore = false;
  #sandboxImage: string | undefined;
  /**
   * Images are gone whose pull records may still be there: also at first, because an earlier run may have removed images
   * and ended before pruning.
   */
  #needsPrune = true;

  constructor(deps: ImageCollectorDependencies, config: ImageCollectorConfig) {
    this.#deps = deps;
    this.#config = config;
    this.#beganMs = deps.clock.monotonic();
  }

  /** To be called once, first. */
  connect(services: ImageServices): void {
    services.leases.onEnd((id) => this.#deps.uses.note(id));
    this.#services.resolve(services);
  }

  async load(): Promise<void> {
    await this.#deps.uses.load();
  }

  async close(): Promise<void> {
    await this.#deps.uses.close();
  }

  /**
   * Collects every five minutes, the first time as soon as all pods are known, until the signal aborts. Never rejects.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const { ready } = await this.#services.promise;
    const pause = async (name: string, ms: number): Promise<void> =>
      await clock.sleep(name, ms, signal).catch(() => {});
    while (!signal.aborted && !ready()) await pause("all pods to be known, to collect images", untilReadyMs);
    this.#beganMs = clock.monotonic();
    while (!signal.aborted) {
      await this.#collectAndTell(signal);
      await pause("next collection of images", periodMs);
    }
  }

  /** Then upstream collects nothing at all; here only the records of images that others removed are pruned. */
  get #isOff(): boolean {
    const { highThresholdPercent, maxAgeMs } = this.#config;
    return highThresholdPercent === 100 && maxAgeMs === 0;
  }

  async #collectAndTell(signal: AbortSignal): Promise<void> {
    const { journal, log } = this.#deps;
    try {
      await this.collect(signal);
      this.#failedBefore = false;
    } catch (error) {
      if (signal.aborted) return;
      const message = errorMessage(error);
      log.warn("image garbage collection failed", { error: message });
      // As upstream: a single failure may mean that the runtime has just started.
      if (this.#failedBefore && !this.#isOff) journal.record({ kind: "note", what: "ImageGCFailed", message });
      this.#failedBefore = true;
    }
  }

  /**
   * One collection by age and by free space.
   * @throws Error when it could not free enough
   */
  async collect(signal: AbortSignal): Promise<void> {
    const { maxAgeMs } = this.#config;
    await this.#pass(signal, async (pass) => {
      if (this.#isOff) return;
      const isOverdue = pass.verdicts.overdue.length > 0;
      const cause: Cause = { code: "ImageTooOld", message: `not in use for ${formatGoDuration(maxAgeMs)}` };
      for (const image of pass.verdicts.overdue) await this.#remove(pass, image, "age", cause);
      await this.#freeByRoom(pass);
      if (isOverdue) this.#requireNoFailure(pass);
    });
  }

  /** Removes every unused image. Rejects only with the signal's reason, or when the runtime cannot be queried. */
  async removeUnused(cause: Cause, signal: AbortSignal): Promise<ImagesFreed> {
    return await this.#pass(signal, async (pass) => {
      const before = await this.#available(signal);
      const { overdue, unused, held } = pass.verdicts;
      for (const image of [...overdue, ...unused]) await this.#remove(pass, image, "space", cause);
      const { removed, failures } = pass;
      const after = removed.length === 0 ? before : await this.#available(signal);
      const freedBytes = increase(before, after);
      this.#tellFreed(pass, freedBytes, cause);
      return { removed, failures, freedBytes, held };
    });
  }

  /**
   * Does some work, and measures the free space that it makes on the image file system. Runtimes delete what dead
   * containers wrote a little later, so it waits briefly for the bytes that are expected of the result.
   */
  async measure<T>(
    work: () => Promise<T>,
    expectedBytes: (result: T) => number,
    signal: AbortSignal,
  ): Promise<{ readonly result: T; readonly freedBytes: number }> {
    const before = await this.#available(signal);
    const result = await work();
    const wantedBytes = (before ?? 0) + expectedBytes(result);
    return { result, freedBytes: increase(before, await this.#available(signal, wantedBytes)) };
  }

  /** Free bytes of the image file system, as soon as they are as many as wanted, or after a while; undefined: unknown. */
  async #available(signal: AbortSignal, wantedBytes = 0): Promise<number | undefined> {
    const { fileSystem, log } = this.#deps;
    try {
      const mountPoint = await fileSystem.mountPoint(signal);
      const isEnough = ({ availableBytes }: FileSystemRoom): boolean => availableBytes >= wantedBytes;
      return (await fileSystem.roomOnceFreed(mountPoint, isEnough, signal)).availableBytes;
    } catch (error) {
      signal.throwIfAborted();
      log.warn("cannot measure the freed space of the image file system", { error: errorMessage(error) });
      return undefined;
    }
  }

  /** What {@link removeUnused} would remove, and why the others stay. Changes nothing. */
  async preview(signal: AbortSignal): Promise<ImageVerdicts> {
    const { leases } = await this.#services.promise;
    using survey = leases.survey();
    return await this.#look(survey, signal);
  }

  async #pass<T>(signal: AbortSignal, work: (pass: Pass) => Promise<T>): Promise<T> {
    using _turn = await this.#turn.acquire(signal);
    const { leases } = await this.#services.promise;
    using survey = leases.survey();
    const verdicts = await this.#look(survey, signal);
    const pass: Pass = { survey, verdicts, signal, removed: [], failures: [] };
    try {
      return await work(pass);
    } finally {
      await this.#deps.uses.save();
      if (this.#needsPrune) await this.#prune(signal);
    }
  }

  /** Never rejects: the next pass retries. */
  async #prune(signal: AbortSignal): Promise<void> {
    const { access } = await this.#services.promise;
    const beganMs = this.#deps.clock.monotonic();
    // A preview may find more images gone meanwhile.
    this.#needsPrune = false;
    const left = await this.#list(signal).catch(() => undefined);
    if (left === undefined || !(await access.prune(left, beganMs))) this.#needsPrune = true;
  }

  async #list(signal: AbortSignal): Promise<readonly Image[]> {
    return (await this.#deps.images.listImages({}, { signal, timeoutMs })).images;
  }

  async #look(survey: ImageSurvey, signal: AbortSignal): Promise<ImageVerdicts> {
    const { clock, runtime, uses, labels } = this.#deps;
    const { access, wanted, mayMount } = await this.#services.promise;
    const [images, { containers }] = await Promise.all([
      this.#list(signal),
      runtime.listContainers({}, { signal, timeoutMs }),
    ]);
    const mounted = await mountedImages(runtime, mayMount(containers), { signal, timeoutMs });
    const inUse = new Set(imagesInUse({ images, containers, mounted }).keys());
    const ids = images.map(({ id }) => id);
    if (uses.observe(ids, inUse)) this.#needsPrune = true;
    const foreign = new Set<string>();
    if (this.#config.onlyPulled) {
      for (const image of images) if (!(await access.isPulled(image))) foreign.add(image.id);
    }
    this.#sandboxImage ??= await sandboxImage(runtime, signal);
    const own = { sandboxImage: this.#sandboxImage, wanted: wanted() };
    const found = { images, containers, mounted, ...own, foreign, isLeased: (id: string) => survey.isLeased(id) };
    const known = knownImages(found, (id) => uses.of(id), labels);
    const times = { nowMs: clock.monotonic(), beganMs: this.#beganMs };
    return judgeImages(known, this.#config, times);
  }

  async #freeByRoom(pass: Pass): Promise<void> {
    const { fileSystem, journal } = this.#deps;
    const { signal } = pass;
    const mountPoint = await fileSystem.mountPoint(signal);
    const room = await fileSystem.room(mountPoint);
    if (room.capacityBytes === 0) {
      const message = "invalid capacity 0 on image filesystem";
      journal.record({ kind: "note", what: "InvalidDiskCapacity", message });
      throw new Error(message);
    }
    const shortage = shortageOf(room, this.#config);
    if (shortage === undefined) return;
    const { lowThresholdPercent } = this.#config;
    const isEnough = (now: typeof room): boolean => bytesAbove(now, lowThresholdPercent) === 0;
    const cause = shortageCause(shortage, this.#config);
    let now = room;
    let removedBytes = 0;
    for (const image of pass.verdicts.unused) {
      // A removal that fails may take long, and others may have made room meanwhile.
      const isGone = await this.#remove(pass, image, "space", cause);
      if (isGone) removedBytes += image.sizeBytes;
      const hopes = isGone && removedBytes >= shortage.bytesToFree;
      now = hopes ? await fileSystem.roomOnceFreed(mountPoint, isEnough, signal) : await fileSystem.room(mountPoint);
      if (isEnough(now)) break;
    }
    const freedBytes = Math.max(0, now.availableBytes - room.availableBytes);
    this.#tellFreed(pass, freedBytes, cause);
    if (isEnough(now)) return;
    this.#requireNoFailure(
      pass,
      `wanted to free ${shortage.bytesToFree} bytes, but freed ${freedBytes} bytes space with `,
    );
    const message = insufficient(shortage, room.capacityBytes, freedBytes, pass.verdicts.held);
    journal.record({ kind: "note", what: "FreeDiskSpaceFailed", message, cause });
    throw new Error(message);
  }

  /** @returns whether the image is gone */
  async #remove(pass: Pass, image: KnownImage, reason: Reason, cause: Cause): Promise<boolean> {
    const { clock, journal, images, log } = this.#deps;
    const { id, names, runtimeHandler, sizeBytes } = image;
    const { signal, survey } = pass;
    signal.throwIfAborted();
    const message = `remove image ${names[0] ?? id}, ${formatSize(sizeBytes)}`;
    const action = { what: "RemoveImage", message, cause, data: { image: id, sizeBytes, reason } } as const;
    const spec = { image: id, runtimeHandler };
    try {
      const isRemoved = await survey.remove(id, () =>
        perform(journal, clock, { ...action, outcomeData: { reason } }, async () => {
          await images.removeImage({ image: spec }, { signal, timeoutMs });
          const left = await images.imageStatus({ image: spec }, { signal, timeoutMs });
          if (left.image !== undefined) throw new Error("the runtime reported the removal, but still has the image");
        }),
      );
      if (!isRemoved) return false;
      pass.removed.push(image);
      this.#needsPrune = true;
      this.#deps.uses.forget(id);
      return true;
    } catch (error) {
      signal.throwIfAborted();
      log.warn("cannot remove an image", { image: names[0] ?? id, error: errorMessage(error) });
      pass.failures.push(`${id}: ${errorMessage(error)}`);
      return false;
    }
  }

  #requireNoFailure({ failures }: Pass, before = ""): void {
    if (failures.length > 0) throw new Error(`${before}errors in image deletion: [${failures.join(", ")}]`);
  }

  #tellFreed({ removed, verdicts }: Pass, freedBytes: number, cause: Cause): void {
    const stays = holdSummary(verdicts.held);
    const why = stays === "" ? "" : `; kept: ${stays}`;
    const message = `removed ${removed.length} images, ${formatSize(freedBytes)} freed${why}`;
    this.#deps.journal.record({
      kind: "note",
      what: "ImagesCollected",
      message,
      cause,
      data: { removed: removed.length, freedBytes },
    });
    this.#deps.log.info("image garbage collection finished", {
      removed: removed.length,
      freedBytes,
      cause: cause.message,
    });
  }
}

/** Bytes; 0 if there are fewer, or how many is unknown. */
function increase(before: number | undefined, after: number | undefined): number {
  return before === undefined || after === undefined ? 0 : Math.max(0, after - before);
}

function shortageCause({ usedPercent }: Shortage, policy: ImageGarbagePolicy): Cause {
  const { highThresholdPercent, lowThresholdPercent } = policy;
  const message = `the image file system is ${usedPercent}% full: above the high threshold of ${highThresholdPercent}%, freeing down to ${lowThresholdPercent}%`;
  return { code: "ImageFsFull", message };
}

/** Upstream's message, followed by why nothing else could be removed. */
function insufficient(
  { usedPercent }: Shortage,
  capacityBytes: number,
  freedBytes: number,
  held: ImageVerdicts["held"],
): string {
  const said =
    `Insufficient free disk space on the node's image filesystem (${usedPercent}% of ${formatSize(capacityBytes)} used). ` +
    `Failed to free sufficient space by deleting unused images (freed ${freedBytes} bytes). ` +
    "Investigate disk usage, as it could be used by active images, logs, volumes, or other data.";
  const stays = holdSummary(held);
  return stays === "" ? said : `${said} Images that stay: ${stays}.`;
}
