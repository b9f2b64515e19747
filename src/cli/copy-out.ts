import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { MachineContext } from "./machine-context.ts";

/** There is no limit to the size of a volume. */
const copyMs = 7 * 24 * 3_600_000;

/**
 * Copies the content of a directory, with owners, modes, times, links and extended attributes: to a tar archive if the
 * destination is called so, else to a new or empty directory.
 * @throws PodwrightError when the destination has something in it already, or the copy fails; an unfinished archive is
 * removed
 */
export async function copyOut(
  { files, processes }: Pick<MachineContext, "files" | "processes">,
  source: string,
  destination: string,
  signal: AbortSignal,
): Promise<void> {
  const isArchive = /\.(?:tar|tar\.gz|tgz)$/u.test(destination);
  const there = await files.stat(destination);
  const isEmpty = !isArchive && there?.type === "directory" && (await files.list(destination)).length === 0;
  if (there !== undefined && !isEmpty) {
    const how = isArchive ? "" : " and is no empty directory";
    throw new PodwrightError(ExitCode.badInput, `${destination} exists already${how}`, {
      remedy: "choose another destination; NAME.tar and NAME.tar.gz become archives",
    });
  }
  if (!isArchive) await files.makeDirectory(destination, 0o700);
  const [program, arguments_] = isArchive
    ? [
        "tar",
        ["--numeric-owner", "--xattrs", destination.endsWith(".tar") ? "-cf" : "-czf", destination, "-C", source, "."],
      ]
    : ["cp", ["-a", "--reflink=auto", "--", `${source}/.`, destination]];
  const result = await processes
    .run(program, arguments_, { timeoutMs: copyMs, signal })
    .catch(async (error: unknown) => {
      if (isArchive) await files.remove(destination);
      signal.throwIfAborted();
      throw new PodwrightError(ExitCode.environment, `cannot run ${program}`, {
        cause: error,
        remedy: `install ${program}`,
      });
    });
  // tar's 1: a file changed as it was read.
  if (result.exitCode === 0 || (isArchive && result.exitCode === 1)) return;
  if (isArchive) await files.remove(destination);
  const why = result.stderr.trim().split("\n")[0] ?? "";
  throw new PodwrightError(ExitCode.failed, `cannot copy ${source} to ${destination}: ${why}`);
}
