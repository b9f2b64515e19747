import { formatGoDuration } from "../base/go-duration.ts";

/** When images go (KubeletConfiguration's imageGC… and image…GCAge). */
export interface ImageGarbagePolicy {
  /** From this use of the image file system on, in percent, images go. */
  readonly highThresholdPercent: number;
  /** Down to this use. */
  readonly lowThresholdPercent: number;
  /** An image stays for so long after it was first seen. */
  readonly minAgeMs: number;
  /** One that was not used for so long goes even from a file system with room; 0: none does. */
  readonly maxAgeMs: number;
}

/** Why an image stays. */
export interface ImageHold {
  readonly reason: "inUse" | "wanted" | "leased" | "pinned" | "notOurs" | "tooYoung";
  /** `in use by container web of pod default/shop`. */
  readonly text: string;
}

/** An image of the runtime with what is known of its use. Times are monotonic ms, those of an earlier life below this one's. */
export interface KnownImage {
  readonly id: string;
  readonly runtimeHandler: string;
  /** Tags, then digests. */
  readonly names: readonly string[];
  /** As the runtime says; layers that images share count for each. */
  readonly sizeBytes: number;
  readonly detectedMs: number;
  /** Undefined: never seen in use. */
  readonly lastUsedMs: number | undefined;
  /** Why it stays however old it is. */
  readonly hold: ImageHold | undefined;
}

/** What may become of the images of a node. */
export interface ImageVerdicts {
  /** They go whether or not there is room. */
  readonly overdue: readonly KnownImage[];
  /** They go when room is needed, in this order. */
  readonly unused: readonly KnownImage[];
  readonly held: readonly { readonly image: KnownImage; readonly hold: ImageHold }[];
}

/** Monotonic ms: now, and since when images are collected in this life. */
export interface CollectionTimes {
  readonly nowMs: number;
  readonly beganMs: number;
}

/**
 * Which images may go, and in which order; pure. As upstream but that an image counts as used when it was first seen, where
 * upstream takes one that never was in use for infinitely old: pulled a moment ago, it would be overdue.
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

/** Those first that were not used for longest, of those that never were the ones seen first. */
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

/** As upstream: nothing is overdue until this life has seen for so long what is used. */
function isOverdue(
  { lastUsedMs, detectedMs }: KnownImage,
  { maxAgeMs }: ImageGarbagePolicy,
  { nowMs, beganMs }: CollectionTimes,
): boolean {
  return maxAgeMs > 0 && nowMs - beganMs > maxAgeMs && nowMs - (lastUsedMs ?? detectedMs) > maxAgeMs;
}

/** How full a file system is. */
export interface FileSystemRoom {
  readonly capacityBytes: number;
  readonly availableBytes: number;
}

/** What a file system is short of. */
export interface Shortage {
  readonly usedPercent: number;
  /** To come down to the low threshold. */
  readonly bytesToFree: number;
}

/** What has to be freed of a file system that is as full as the high threshold or fuller; pure. Percents as upstream rounds them. */
export function shortageOf(room: FileSystemRoom, policy: ImageGarbagePolicy): Shortage | undefined {
  const usedPercent = usedPercentOf(room);
  if (usedPercent < policy.highThresholdPercent) return undefined;
  return { usedPercent, bytesToFree: bytesAbove(room, policy.lowThresholdPercent) };
}

/** Bytes that are used beyond a part of the file system; 0: none. */
export function bytesAbove({ capacityBytes, availableBytes }: FileSystemRoom, percent: number): number {
  return Math.max(0, Math.floor((capacityBytes * (100 - percent)) / 100) - Math.min(availableBytes, capacityBytes));
}

function usedPercentOf({ capacityBytes, availableBytes }: FileSystemRoom): number {
  return 100 - Math.floor((Math.min(availableBytes, capacityBytes) * 100) / capacityBytes);
}

/** `3 in use, 1 pinned`: why images stay; pure. Empty when none does. */
export function holdSummary(held: ImageVerdicts["held"]): string {
  const counts = Map.groupBy(held, ({ hold }) => hold.reason);
  return [...counts].map(([reason, each]) => `${each.length} ${holdWords[reason]}`).join(", ");
}

const holdWords = {
  inUse: "in use",
  wanted: "wanted by pods",
  leased: "about to be used",
  pinned: "pinned",
  notOurs: "not pulled by podwright",
  tooYoung: "younger than imageMinimumGCAge",
} as const satisfies Record<ImageHold["reason"], string>;

/** A size as upstream's events write it: `512 B`, `1.5 GiB`. */
export function formatSize(bytes: number): string {
  const units = ["KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(units.length, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return power === 0 ? `${Math.trunc(bytes)} B` : `${(bytes / 1024 ** power).toFixed(1)} ${units[power - 1]}`;
}
