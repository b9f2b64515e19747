/**
 * Names of a log's files: `0.log` is written, `0.log.20261120-140211` is rotated, `….gz` is compressed. `.tmp` was
 * being compressed when podwright stopped. Stamps of one log grow, so they order its files.
 */

/** One rotated file of a log. */
export interface RotatedLog {
  readonly name: string;
  /** `20261120-140211`. */
  readonly stamp: string;
  readonly packed: boolean;
}

export const packedSuffix = ".gz";
export const temporarySuffix = ".tmp";
const stampPattern = /^(\d{8}-\d{6})(\.gz)?$/;

/**
 * The rotated files of a log among the names of its directory, oldest first. If one exists twice, the compressed one.
 */
export function rotatedLogs(names: readonly string[], logName: string): RotatedLog[] {
  const found = new Map<string, RotatedLog>();
  for (const name of names) {
    if (!name.startsWith(`${logName}.`)) continue;
    const match = stampPattern.exec(name.slice(logName.length + 1));
    const stamp = match?.[1];
    if (stamp === undefined) continue;
    const packed = match?.[2] !== undefined;
    if (packed || !found.has(stamp)) found.set(stamp, { name, stamp, packed });
  }
  return [...found.values()].toSorted((a, b) => (a.stamp < b.stamp ? -1 : 1));
}

/** Unneeded files of the log: half-compressed ones, and originals of compressed ones. */
export function unusedLogs(names: readonly string[], logName: string): string[] {
  const all = new Set(names);
  return names.filter((name) => {
    if (!name.startsWith(`${logName}.`)) return false;
    return name.endsWith(temporarySuffix) || (isStamped(name, logName) && all.has(name + packedSuffix));
  });
}

function isStamped(name: string, logName: string): boolean {
  const match = stampPattern.exec(name.slice(logName.length + 1));
  return match !== null && match[2] === undefined;
}

/**
 * The stamp of a rotation now (UTC, to be independent of daylight saving time). Always later than the newest existing,
 * though the clock may have jumped or two rotations fall into one second: a reused name would lose a log.
 */
export function nextStamp(nowMs: number, newest: string | undefined): string {
  const stamp = stampOf(nowMs);
  if (newest === undefined || stamp > newest) return stamp;
  const after = Date.parse(newest.replace(/^(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)$/, "$1-$2-$3T$4:$5:$6Z"));
  return stampOf((Number.isNaN(after) ? nowMs : after) + 1000);
}

function stampOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replaceAll(/[-:]/g, "").replace("T", "-");
}

export interface RotationPlan {
  /** To be removed before the rotation, oldest first. */
  readonly remove: readonly string[];
  /** To be compressed after it. */
  readonly pack: readonly string[];
  /** The current file's new name. */
  readonly rotatedName: string;
}

/**
 * The steps of a rotation; pure. Afterwards there are at most `maxFiles`: the current one, the newest rotated one
 * uncompressed, so that readers and collectors may finish it, and compressed older ones.
 */
export function planRotation(names: readonly string[], logName: string, maxFiles: number, nowMs: number): RotationPlan {
  const rotated = rotatedLogs(names, logName);
  const excess = rotated.slice(0, Math.max(0, rotated.length - Math.max(0, maxFiles - 2)));
  const kept = rotated.slice(excess.length);
  return {
    remove: [...unusedLogs(names, logName), ...excess.map(({ name }) => name)],
    pack: kept.filter(({ packed }) => !packed).map(({ name }) => name),
    rotatedName: `${logName}.${nextStamp(nowMs, rotated.at(-1)?.stamp)}`,
  };
}
