import type { CgroupLayout } from "../ports/stats-files.ts";
import type { CgroupSample } from "./cgroup-sample.ts";
import { filesV1, sampleV1 } from "./cgroup-v1.ts";
import { filesV2, sampleV2 } from "./cgroup-v2.ts";
import { type CgroupTexts, type Depth, isAtLeast } from "./depth.ts";

/** A cgroup file and its path. */
export interface CgroupFilePath {
  readonly name: string;
  readonly path: string;
}

/** The files to read for a cgroup. @param cgroup `/kubepods/pod1`, below the root of every hierarchy */
export function cgroupFilePaths(layout: CgroupLayout, cgroup: string, depth: Depth): CgroupFilePath[] {
  const below = cgroup === "/" ? "" : cgroup;
  const files: CgroupFilePath[] = [];
  for (const file of layout.version === 2 ? filesV2 : filesV1) {
    if (!isAtLeast(depth, file.depth)) continue;
    const root = layout.version === 2 ? layout.root : layout.controllers[file.controller ?? ""];
    if (root !== undefined) files.push({ name: file.name, path: `${root}${below}/${file.name}` });
  }
  return files;
}

/** The directory that lists a cgroup's children. */
export function cgroupDirectory(layout: CgroupLayout, cgroup: string): string {
  const root = layout.version === 2 ? layout.root : (layout.controllers["memory"] ?? "/sys/fs/cgroup/memory");
  return cgroup === "/" ? root : `${root}${cgroup}`;
}

/**
 * Their newest modification is the creation time of a cgroup, as cAdvisor determines it: the directory, which child
 * cgroups modify later, and a file that does not change.
 */
export function cgroupCreationPaths(layout: CgroupLayout, cgroup: string): string[] {
  const below = cgroup === "/" ? "" : cgroup;
  const [roots, file] =
    layout.version === 2
      ? [[layout.root], "cgroup.events"]
      : [[...new Set(Object.values(layout.controllers))], "cgroup.clone_children"];
  return roots.flatMap((root) => [`${root}${below}`, `${root}${below}/${file}`]);
}

export function cgroupSample(version: 1 | 2, texts: CgroupTexts, timeMs: number, isRoot = false): CgroupSample {
  return version === 2 ? sampleV2(texts, timeMs, isRoot) : sampleV1(texts, timeMs);
}
