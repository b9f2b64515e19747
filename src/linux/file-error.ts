import { errorMessage } from "../base/errors.ts";
import { FileError } from "../ports/files.ts";

/** The errno name of a system error (`ENOENT` …), or Node's own code; undefined for anything else. */
export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** Whatever file system work threw, as a {@link FileError} about `path`. */
export function fileError(error: unknown, path: string): FileError {
  if (error instanceof FileError) return error;
  const message = errorMessage(error);
  return new FileError(errnoOf(error) ?? "UNKNOWN", path, message, { cause: error });
}

/** Does file system work on `path`, which must be absolute, and turns what it throws into a {@link FileError}. */
export async function onPath<T>(path: string, work: () => Promise<T>): Promise<T> {
  if (!path.startsWith("/")) throw new FileError("EINVAL", path, `EINVAL: the path is not absolute: '${path}'`);
  try {
    return await work();
  } catch (error) {
    throw fileError(error, path);
  }
}
