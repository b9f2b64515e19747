import { dirname } from "node:path/posix";
import type { VolumeMount } from "../api/volume.ts";
import type { Files } from "../ports/files.ts";
import type { Mounts } from "../ports/mounts.ts";
import type { VolumeFiles } from "../ports/volume-files.ts";
import { ContainerConfigError } from "../runtime/config/container-config-error.ts";
import type { EnvironmentVariable } from "../runtime/config/environment.ts";
import { expand } from "../runtime/config/expansion.ts";

/**
 * The part of its volume that a mount shows, from `subPath` or from `subPathExpr` and the container's environment;
 * empty: all of it. Pure.
 * @throws ContainerConfigError when a variable is missing or empty, or the path is absolute or holds `..`
 */
export function subPathOf(mount: VolumeMount, environment: readonly EnvironmentVariable[]): string {
  const path = mount.subPathExpr ? expandExpression(mount.subPathExpr, environment) : (mount.subPath ?? "");
  if (path.startsWith("/")) throw new ContainerConfigError(`error SubPath \`${path}\` must not be an absolute path`);
  if (path.split("/").includes("..")) {
    throw new ContainerConfigError(`unable to provision SubPath \`${path}\`: must not contain '..'`);
  }
  if (path.includes("\0")) throw new ContainerConfigError("unable to provision SubPath: it contains a zero byte");
  return path;
}

function expandExpression(expression: string, environment: readonly EnvironmentVariable[]): string {
  const values = new Map(environment.map(({ name, value }) => [name, new TextDecoder().decode(value)]));
  const missing = new Set<string>();
  const expanded = expand(expression, (name) => {
    const value = values.get(name);
    if (!value) missing.add(name);
    return value;
  });
  if (missing.size > 0) throw new ContainerConfigError(`missing value for ${[...missing].toSorted().join(", ")}`);
  return expanded;
}

interface SubPathDependencies {
  readonly files: Files;
  readonly volumeFiles: VolumeFiles;
  readonly mounts: Mounts;
}

/**
 * Binds a part of a volume to a place of its own, which the runtime then mounts: the runtime would resolve a path in
 * the volume again, and a pod may have put a link there by then (CVE-2017-1002101, CVE-2021-25741). What is bound is
 * the file that was opened, not what its path names later.
 * @param target where, without links; a bind from an earlier start is kept when it still shows the same file
 */
export async function bindSubPath(
  { files, volumeFiles, mounts }: SubPathDependencies,
  volume: string,
  subPath: string,
  target: string,
): Promise<void> {
  await using opened = await volumeFiles.openBeneath(volume, subPath);
  for (const { target: mounted } of await mounts.below(target)) {
    if (mounted !== target) continue;
    const info = await files.stat(target);
    if (info?.device === opened.device && info.inode === opened.inode) return;
    await mounts.unmount(target);
  }
  await files.makeDirectory(dirname(target), 0o750);
  // An earlier one may have been a file where now a directory is needed.
  await files.remove(target);
  if (opened.isDirectory) await files.makeDirectory(target, 0o750);
  else await files.write(target, "", 0o640);
  await mounts.mount({ source: opened.mountSource, target, fileSystem: "", options: ["bind"] });
}
