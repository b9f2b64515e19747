import type { ProjectLists } from "../ports/project-quotas.ts";

/** Kubelets take projects from here on (upstream's FirstQuota). */
export const firstProject = 1_048_577;

/** A kubelet's line of `/etc/projects`. */
export interface ProjectLine {
  readonly project: number;
  readonly path: string;
}

/** The project that a kubelet listed for a path; undefined: none, or not only one. */
export function listedProject({ projects }: ProjectLists, path: string): number | undefined {
  const own = new Set(kubeletLines(projects).flatMap((line) => (line.path === path ? line.project : [])));
  const [only] = own;
  return own.size === 1 ? only : undefined;
}

/** Whether a path other than the given one has the project, in whatever form. */
export function isListedElsewhere({ projects }: ProjectLists, { project, path }: ProjectLine): boolean {
  const lines = projects.matchAll(/^[ \t]*(\d+)[ \t]*:(.*)$/gmu);
  return [...lines].some(([, id, other]) => Number(id) === project && other !== path);
}

/** Lines that a kubelet has written, by their form. Others' lines may have it, too. */
export function kubeletLines(projects: string): ProjectLine[] {
  return projects.split("\n").flatMap((line) => parseProject(line) ?? []);
}

/**
 * Projects that no list has, in upstream's order. Read as leniently as xfs_quota does, so that a line which upstream
 * takes for unusable keeps its project.
 */
export function* unlistedProjects({ projects, projid }: ProjectLists): Iterable<number> {
  const taken = new Set([
    ...[...projects.matchAll(/^[ \t]*(\d+)[ \t]*:/gmu)].map(([, id]) => Number(id)),
    ...[...projid.matchAll(/^[^#\n][^:\n]*:[ \t]*(\d+)/gmu)].map(([, id]) => Number(id)),
    // A name of another project.
    ...[...projid.matchAll(/^volume(\d+):/gmu)].map(([, id]) => Number(id)),
  ]);
  for (let project = firstProject; ; project++) if (!taken.has(project)) yield project;
}

/** The lists with a new project, in upstream's form. */
export function withProject({ projects, projid }: ProjectLists, { project, path }: ProjectLine): ProjectLists {
  return {
    projects: appended(projects, `${project}:${path}`),
    projid: appended(projid, `volume${project}:${project}`),
  };
}

/** The lists without the kubelet's lines of some paths; undefined: there are none. Other lines stay as they are. */
export function withoutPaths(
  { projects, projid }: ProjectLists,
  isRemoved: (path: string) => boolean,
): ProjectLists | undefined {
  const gone = new Set<number>();
  const kept = projects.split("\n").filter((line) => {
    const parsed = parseProject(line);
    if (parsed === undefined || !isRemoved(parsed.path)) return true;
    gone.add(parsed.project);
    return false;
  });
  if (gone.size === 0) return undefined;
  for (const line of kept) {
    const stillUsed = /^[ \t]*(\d+)[ \t]*:/u.exec(line)?.[1];
    if (stillUsed !== undefined) gone.delete(Number(stillUsed));
  }
  const names = new Set([...gone].map((project) => `volume${project}:${project}`));
  const keptNames = projid.split("\n").filter((line) => !names.has(line));
  return { projects: kept.join("\n"), projid: keptNames.join("\n") };
}

function parseProject(line: string): ProjectLine | undefined {
  const [, id, path] = /^(\d+):(.*)$/u.exec(line) ?? [];
  const project = Number(id);
  return path === undefined || project < firstProject ? undefined : { project, path };
}

function appended(text: string, line: string): string {
  const separator = text === "" || text.endsWith("\n") ? "" : "\n";
  return `${text}${separator}${line}\n`;
}
