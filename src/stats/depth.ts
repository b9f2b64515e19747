/** How much to read: for autoscalers, for `/stats/summary`, or for `/metrics/cadvisor`. */
export type Depth = "resources" | "summary" | "everything";

export interface CgroupFile {
  readonly name: string;
  /** v1: the hierarchy's controller. */
  readonly controller?: string;
  /** The lowest depth that needs it. */
  readonly depth: Depth;
}

/** Contents of a cgroup's files by name; missing files are omitted. */
export type CgroupTexts = ReadonlyMap<string, string>;

const depths: readonly Depth[] = ["resources", "summary", "everything"];

export function isAtLeast(depth: Depth, other: Depth): boolean {
  return depths.indexOf(depth) >= depths.indexOf(other);
}
