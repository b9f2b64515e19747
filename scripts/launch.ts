/** In dist/, beside the program: the last build's files, one per line; the bundled packages; V8's code cache. */
export const fileListName = "files.txt";
export const packageListName = "packages.json";
export const compileCacheName = "compile-cache";

/**
 * Settings with which bin/podwright starts a node, for other starters: V8's flags, and the C library's memory settings.
 */
export const nodeFlags = [
  "--min-semi-space-size=2",
  "--max-semi-space-size=8",
  "--max-old-space-size=512",
  "--disable-warning=ExperimentalWarning",
] as const;

export const mallocSettings = {
  MALLOC_ARENA_MAX: "1",
  MALLOC_MMAP_THRESHOLD_: "16384",
  MALLOC_TRIM_THRESHOLD_: "65536",
} as const;
