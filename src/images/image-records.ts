import { FileError, type Files } from "../ports/files.ts";
import type { Hashing } from "../ports/hashing.ts";

/** Directory of pull records below the root directory, in the Go kubelet's layout (KEP-2535). */
export const imageRecordDirectory = "image_manager";

/** A longer file is no record. */
export const maxRecordBytes = 16 * 1024 * 1024;

const recordName = /^sha256-[0-9a-f]{64}$/u;

/** True for the file name of a pull record. */
export function isImageRecord(name: string): boolean {
  return recordName.test(name);
}

/**
 * The file name of an image's record.
 * @param image its name, or the runtime's reference
 */
export function imageRecordName(hashing: Hashing, image: string): string {
  return `sha256-${hashing.sha256(image)}`;
}

/**
 * Counts pull records.
 * @throws FileError for an unreadable directory
 */
export async function countImageRecords(
  files: Pick<Files, "list">,
  rootDirectory: string,
): Promise<{ readonly intents: number; readonly pulled: number }> {
  const count = async (directory: string): Promise<number> => {
    try {
      const entries = await files.list(`${rootDirectory}/${imageRecordDirectory}/${directory}`);
      return entries.filter(({ name }) => isImageRecord(name)).length;
    } catch (error) {
      if (error instanceof FileError && error.code === "ENOENT") return 0;
      throw error;
    }
  };
  const [intents, pulled] = await Promise.all([count("pulling"), count("pulled")]);
  return { intents, pulled };
}
