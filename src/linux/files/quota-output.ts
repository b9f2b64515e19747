import type { TreeUsage } from "../../ports/stats-files.ts";

/** Parsers of what xfs_quota(8) and xfs_io(8) print under `LC_ALL=C`. Pure; what they do not know is undefined. */

/** Whether `state -p` says that the file system accounts for projects. */
export function accountsForProjects(output: string): boolean {
  return /^Project quota state on .*\n {2}Accounting: ON$/mu.test(output);
}

/**
 * One amount of space or of inodes: used, soft limit, hard limit, warnings, and the time left, which may be of two words.
 */
const amount = String.raw`(\d+)\s+\d+\s+\d+\s+\d+\s+\[[^\]\n]*\]`;
/** A long device has a line of its own. */
const usageLine = new RegExp(String.raw`^(\S+)\s+${amount}\s+${amount}\s+\S`, "mu");

/** What `quota -p -N -n -v -b -i PROJECT` says of a device; undefined: it has no record of the project. */
export function projectUsage(output: string, source: string): TreeUsage | undefined {
  const [, device, kibibytes, inodes] = usageLine.exec(output) ?? [];
  if (device !== source) return undefined;
  return { bytes: Number(kibibytes) * 1024, inodes: Number(inodes) };
}

/** What `lsproj` of xfs_io says. */
export function directoryProject(output: string): number | undefined {
  const [, project] = /^projid = (\d+)\n?$/u.exec(output) ?? [];
  return project === undefined ? undefined : Number(project);
}
