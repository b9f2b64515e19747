/** How much is read: what scalers ask for, what `/stats/summary` shows, or all that `/metrics/cadvisor` has. */
export type Depth = "resources" | "summary" | "everything";

export interface CgroupFile {
  readonly name: string;
  /** v1: in whose hierarchy it is. */
  readonly controller?: string;
  /** The least depth at which it is read. */
  readonly depth: Depth;
}

/** Texts of a cgroup's files by name; without those that are not there. */
export type CgroupTexts = ReadonlyMap<string, string>;

const depths: readonly Depth[] = ["resources", "summary", "everything"];

export function isAtLeast(depth: Depth, other: Depth): boolean {
  return depths.indexOf(depth) >= depths.indexOf(other);
}
