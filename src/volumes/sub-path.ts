import { dirname } from "node:path/posix";
import type { VolumeMount } from "../api/volume.ts";
import type { Files } from "../ports/files.ts";
import type { Mounts } from "../ports/mounts.ts";
import type { VolumeFiles } from "../ports/volume-files.ts";
import { ContainerConfigError } from "../runtime/config/container-config-error.ts";
import type { EnvironmentVariable } from "../runtime/config/environment.ts";
import { expandParts, joinParts } from "../runtime/config/expansion.ts";
import { requireLength } from "../runtime/config/text-room.ts";

/** As long as Linux lets a path be. */
const maxPathBytes = 4096;

/**
 * The part of a volume that is mounted, from `subPath` or from `subPathExpr` and the container's environment; empty:
 * all of it. Pure.
 * @throws ContainerConfigError when a variable is missing or empty, or the path is absolute, too long or has `..`
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
  const values = new Map(environment.map(({ name, value }) => [name, value]));
  const missing = new Set<string>();
  const parts = expandParts(expression, (name) => {
    const value = values.get(name);
    if (value === undefined || value.length === 0) missing.add(name);
    return value;
  });
  if (missing.size > 0) throw new ContainerConfigError(`missing value for ${[...missing].toSorted().join(", ")}`);
  requireLength(parts, maxPathBytes, `a path has at most ${maxPathBytes} bytes`, "the expanded SubPath");
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(joinParts(parts));
}

interface SubPathDependencies {
  readonly files: Files;
  readonly volumeFiles: VolumeFiles;
  readonly mounts: Mounts;
}

/**
 * Bind-mounts a part of a volume to its own path, which the runtime then mounts: the runtime would resolve a path in
 * the volume again, where a pod may have placed a link meanwhile (CVE-2017-1002101, CVE-2021-25741). The opened file is
 * bound, not what its path names later.
 * @param target without links; the bind of an earlier start is kept if it still shows the same file
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
    if (await opened.isShownAt(target)) return;
    await mounts.unmount(target);
  }
  await files.makeDirectory(dirname(target), 0o750);
  // The earlier target may be a file where a directory is needed now.
  await files.remove(target);
  if (opened.isDirectory) await files.makeDirectory(target, 0o750);
  else await files.write(target, "", 0o640);
  await mounts.mount({ source: opened.mountSource, target, fileSystem: "", options: ["bind"] });
}
