import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import type { LineLog, WrittenLine } from "../journal/writer.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import { isHeader } from "./replay.ts";

/** The part of the file system that a recording needs. */
export type RecordingFiles = Pick<Files, "append" | "chmod" | "readRange" | "rename" | "stat">;

const firstLineBytes = 4096;

/**
 * A recording and the part before it: FILE is appended to until it has `maxFileBytes`, then it becomes FILE.1 and
 * another one begins, so that the newest is there, and never more than twice as much. Mode 0600.
 */
export class RecordingFile implements LineLog {
  readonly name = "recording";
  readonly #files: RecordingFiles;
  readonly #log: Logger;
  readonly #path: string;
  readonly #header: string;
  readonly #maxFileBytes: number;
  #bytes: number;
  /** The last line on disk may lack its end. */
  #torn = true;
  #failing = false;

  private constructor(
    files: RecordingFiles,
    log: Logger,
    path: string,
    { header, maxFileBytes, bytes }: { header: string; maxFileBytes: number; bytes: number },
  ) {
    this.#files = files;
    this.#log = log;
    this.#path = path;
    this.#header = header;
    this.#maxFileBytes = maxFileBytes;
    this.#bytes = bytes;
  }

  /**
   * Opens or creates the file, and writes the header. An existing recording is continued.
   * @throws PodwrightError for a file of another kind, or one that cannot be written
   */
  static async open(
    files: RecordingFiles,
    log: Logger,
    path: string,
    { header, maxFileBytes }: { header: string; maxFileBytes: number },
  ): Promise<RecordingFile> {
    try {
      const found = await files.stat(path);
      if (found !== undefined && (found.type !== "file" || !(await isRecording(files, path, found.size)))) {
        throw new PodwrightError(ExitCode.badInput, `--record ${path}: the file exists and is not a recording`, {
          remedy: "use another file",
        });
      }
      const file = new RecordingFile(files, log, path, { header, maxFileBytes, bytes: found?.size ?? 0 });
      await file.#write("");
      await files.chmod(path, 0o600);
      return file;
    } catch (error) {
      if (error instanceof PodwrightError) throw error;
      throw new PodwrightError(ExitCode.badInput, `--record ${path}: ${errorMessage(error)}`, {
        cause: error,
        remedy: "use a file in a writable directory",
      });
    }
  }

  /** Rejects with FileError; any part of the lines may be on disk then, and they may be appended again. */
  async append(lines: readonly WrittenLine[]): Promise<void> {
    try {
      const text = lines.map((line) => line.text).join("");
      if (this.#bytes > 0 && this.#bytes + Buffer.byteLength(text) > this.#maxFileBytes) await this.#rotate();
      await this.#write(text);
      this.#failing = false;
    } catch (error) {
      if (!this.#failing) {
        const fields = { path: this.#path, error: errorMessage(error) };
        this.#log.warn("cannot record decisions; retrying, dropping the oldest", fields);
      }
      this.#failing = true;
      throw error;
    }
  }

  /** Only retries: a directory that was removed is not recreated. */
  async repair(): Promise<void> {}

  async #rotate(): Promise<void> {
    await this.#files.rename(this.#path, `${this.#path}.1`);
    this.#bytes = 0;
    this.#torn = true;
  }

  /** After what may have been cut off stands a header: readers know by it that nothing else was broken. */
  async #write(lines: string): Promise<void> {
    const text = (this.#torn ? `${this.#bytes === 0 ? "" : "\n"}${this.#header}` : "") + lines;
    this.#torn = true;
    this.#bytes += Buffer.byteLength(text);
    await this.#files.append(this.#path, text, 0o600);
    this.#torn = false;
  }
}

async function isRecording(files: RecordingFiles, path: string, size: number): Promise<boolean> {
  if (size === 0) return true;
  const [firstLine = ""] = new TextDecoder().decode(await files.readRange(path, 0, firstLineBytes)).split("\n");
  try {
    return isHeader(JSON.parse(firstLine));
  } catch {
    return false;
  }
}
