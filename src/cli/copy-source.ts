import { ExitCode, PodwrightError } from "../base/errors.ts";
import { FileError, type Files } from "../ports/files.ts";

/**
 * The directory that a volume's path leads to: the path may be a link.
 * @throws PodwrightError if there is none, which programs would say in their own words; FileError
 */
export async function copyableDirectory(files: Pick<Files, "realPath" | "stat">, path: string): Promise<string> {
  const real = await existing(files, path);
  const found = real === undefined ? undefined : await files.stat(real);
  if (real === undefined || found === undefined) {
    throw refusal(path, "there is no such directory", "mount the disk that it is on, or restore it");
  }
  if (found.type === "directory") return real;
  if (found.type === "file") {
    throw refusal(path, "it is a file, not a directory", "put the directory back in its place");
  }
  const remedy = "mount the device and copy the files from there, or copy them in a pod that has the claim";
  throw refusal(path, "it is a device, and only directories can be copied", remedy);
}

async function existing(files: Pick<Files, "realPath">, path: string): Promise<string | undefined> {
  return await files.realPath(path).catch((error: unknown) => {
    if (error instanceof FileError && error.code === "ENOENT") return undefined;
    throw error;
  });
}

function refusal(path: string, why: string, remedy: string): PodwrightError {
  return new PodwrightError(ExitCode.failed, `cannot copy from ${path}: ${why}`, { remedy });
}
