import { ExitCode, PodwrightError } from "../base/errors.ts";
import { printable } from "../journal/text.ts";
import { FileError, type Files } from "../ports/files.ts";
import type { Processes } from "../ports/processes.ts";

interface Machine {
  readonly files: Pick<Files, "realPath" | "stat">;
  readonly processes: Pick<Processes, "run">;
}

const shortMs = 30_000;

/**
 * The directory that a volume's path leads to: the path may be a link.
 * @param isOwn whether podwright made the directory for the claim: others' volumes may be meant to be something else
 * @throws PodwrightError if there is none, which programs would say in their own words; FileError
 */
export async function copyableDirectory(machine: Machine, path: string, isOwn: boolean): Promise<string> {
  const { files } = machine;
  const real = await existing(files, path);
  const found = real === undefined ? undefined : await files.stat(real);
  if (real === undefined || found === undefined) {
    throw refusal(path, "there is no such directory", "mount the disk that it is on, or restore it");
  }
  if (found.type === "directory") return real;
  const putBack = isOwn ? "put the directory back in its place" : undefined;
  if (found.type === "file") throw refusal(path, "it is a file, not a directory", putBack ?? "copy the file itself");
  const kind = await kindOf(machine, real);
  if (kind === device) {
    const copies = "mount the device and copy the files from there, or copy them in a pod that has the claim";
    throw refusal(path, "it is a device, and only directories can be copied", putBack ?? copies);
  }
  throw refusal(path, `it is ${kind}, not a directory`, putBack);
}

const device = "a block device";
const kinds: Readonly<Record<string, string>> = {
  "block special file": device,
  "character special file": "a character device",
  fifo: "a named pipe",
  socket: "a socket",
};

/** What is neither a file nor a directory, as stat(1) knows it. */
async function kindOf({ processes }: Machine, path: string): Promise<string> {
  const environment = { LC_ALL: "C" };
  const { stdout } = await processes.run("stat", ["--printf", "%F", "--", path], { timeoutMs: shortMs, environment });
  return kinds[stdout] ?? "a special file";
}

async function existing(files: Pick<Files, "realPath">, path: string): Promise<string | undefined> {
  return await files.realPath(path).catch((error: unknown) => {
    if (error instanceof FileError && error.code === "ENOENT") return undefined;
    throw error;
  });
}

/** @param path of a manifest, which may have any characters */
function refusal(path: string, why: string, remedy: string | undefined): PodwrightError {
  const message = `cannot copy from ${printable(path)}: ${why}`;
  return new PodwrightError(ExitCode.failed, message, { ...(remedy !== undefined && { remedy }) });
}
