import { formatGoDuration } from "../base/go-duration.ts";

/** Limits of image garbage collection (KubeletConfiguration's imageGC… and image…GCAge). */
export interface ImageGarbagePolicy {
  /** Usage of the image file system, in percent, at which images are removed. */
  readonly highThresholdPercent: number;
  /** Usage down to which they are removed. */
  readonly lowThresholdPercent: number;
  /** Minimum time since an image was first seen. */
  readonly minAgeMs: number;
  /** Images unused for longer are removed even from a file system with room; 0: never. */
  readonly maxAgeMs: number;
}

/** Why an image stays. */
export interface ImageHold {
  readonly reason: "inUse" | "wanted" | "leased" | "pinned" | "notOurs" | "tooYoung";
  /** `in use by container web of pod default/shop`. */
  readonly text: string;
}

/** An image of the runtime and its use. Times are monotonic ms; those of an earlier run are below this run's. */
export interface KnownImage {
  readonly id: string;
  readonly runtimeHandler: string;
  /** Tags, then digests. */
  readonly names: readonly string[];
  /** As reported by the runtime; each image counts shared layers in full. */
  readonly sizeBytes: number;
  readonly detectedMs: number;
  /** Undefined: never seen in use. */
  readonly lastUsedMs: number | undefined;
  /** Why it stays, whatever its age. */
  readonly hold: ImageHold | undefined;
}

/** The images of a node by what garbage collection does with them. */
export interface ImageVerdicts {
  /** To be removed whether or not there is room. */
  readonly overdue: readonly KnownImage[];
  /** To be removed when room is needed, in this order. */
  readonly unused: readonly KnownImage[];
  readonly held: readonly { readonly image: KnownImage; readonly hold: ImageHold }[];
}

/** Monotonic ms: now, and the start of image collection in this run. */
export interface CollectionTimes {
  readonly nowMs: number;
  readonly beganMs: number;
}

/**
 * Decides which images may be removed, and in which order; pure. Unlike upstream, an image counts as used when it was
 * first seen; upstream considers a never used one infinitely old, so it would be overdue right after its pull.
 */
export function judgeImages(
  images: readonly KnownImage[],
  policy: ImageGarbagePolicy,
  times: CollectionTimes,
): ImageVerdicts {
  const overdue: KnownImage[] = [];
  const unused: KnownImage[] = [];
  const held: { image: KnownImage; hold: ImageHold }[] = [];
  for (const image of images.toSorted(byLastUsedAndDetected)) {
    const hold = image.hold ?? tooYoung(image, policy, times);
    if (hold !== undefined) held.push({ image, hold });
    else if (isOverdue(image, policy, times)) overdue.push(image);
    else unused.push(image);
  }
  return { overdue, unused, held };
}

/** Longest unused first; among never used ones, first seen first. */
function byLastUsedAndDetected(a: KnownImage, b: KnownImage): number {
  const [used, usedBefore] = [a.lastUsedMs ?? -Infinity, b.lastUsedMs ?? -Infinity];
  return used === usedBefore ? a.detectedMs - b.detectedMs : used - usedBefore;
}

function tooYoung(
  { detectedMs }: KnownImage,
  { minAgeMs }: ImageGarbagePolicy,
  { nowMs }: CollectionTimes,
): ImageHold | undefined {
  const ageMs = nowMs - detectedMs;
  if (ageMs >= minAgeMs) return undefined;
  const age = formatGoDuration(Math.trunc(ageMs / 1000) * 1000);
  const text = `first seen ${age} ago, less than imageMinimumGCAge (${formatGoDuration(minAgeMs)})`;
  return { reason: "tooYoung", text };
}

/** As upstream: nothing is overdue until this run has observed use for the whole period. */
function isOverdue(
  { lastUsedMs, detectedMs }: KnownImage,
  { maxAgeMs }: ImageGarbagePolicy,
  { nowMs, beganMs }: CollectionTimes,
): boolean {
  return maxAgeMs > 0 && nowMs - beganMs > maxAgeMs && nowMs - (lastUsedMs ?? detectedMs) > maxAgeMs;
}

/** Capacity and free space of a file system. */
export interface FileSystemRoom {
  readonly capacityBytes: number;
  readonly availableBytes: number;
}

/** Too little free space on a file system. */
export interface Shortage {
  readonly usedPercent: number;
  /** Needed to reach the low threshold. */
  readonly bytesToFree: number;
}

/** How much to free on a file system at or above the high threshold; pure. Percentages are rounded as upstream does. */
export function shortageOf(room: FileSystemRoom, policy: ImageGarbagePolicy): Shortage | undefined {
  const usedPercent = usedPercentOf(room);
  if (usedPercent < policy.highThresholdPercent) return undefined;
  return { usedPercent, bytesToFree: bytesAbove(room, policy.lowThresholdPercent) };
}

/** Bytes used above a percentage of the file system; 0: none. */
export function bytesAbove({ capacityBytes, availableBytes }: FileSystemRoom, percent: number): number {
  return Math.max(0, Math.floor((capacityBytes * (100 - percent)) / 100) - Math.min(availableBytes, capacityBytes));
}

function usedPercentOf({ capacityBytes, availableBytes }: FileSystemRoom): number {
  return 100 - Math.floor((Math.min(availableBytes, capacityBytes) * 100) / capacityBytes);
}

/** `3 in use, 1 pinned`: why images stay; empty when none does. Pure. */
export function holdSummary(held: ImageVerdicts["held"]): string {
  const counts = Map.groupBy(held, ({ hold }) => hold.reason);
  return [...counts].map(([reason, each]) => `${each.length} ${holdWords[reason]}`).join(", ");
}

const holdWords = {
  inUse: "in use",
  wanted: "needed by pods",
  leased: "about to be used",
  pinned: "pinned",
  notOurs: "not pulled by podwright",
  tooYoung: "younger than imageMinimumGCAge",
} as const satisfies Record<ImageHold["reason"], string>;

/** A size in the format of upstream's events: `512 B`, `1.5 GiB`. */
export function formatSize(bytes: number): string {
  const units = ["KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(units.length, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return power === 0 ? `${Math.trunc(bytes)} B` : `${(bytes / 1024 ** power).toFixed(1)} ${units[power - 1]}`;
}
