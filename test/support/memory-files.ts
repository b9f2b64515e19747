import { type DirectoryEntry, FileError, type FileInfo } from "../../src/ports/files.ts";
import type { JournalFiles } from "../../src/journal/segments.ts";

/** In-memory files of one directory, with injected disk errors. For tests. */
export class MemoryFiles implements JournalFiles {
  readonly contents = new Map<string, string>();
  readonly modes = new Map<string, number>();
  /** While set, appends write this part of their text and then fail with the code. */
  broken: { readonly code: string; readonly writtenPart: number } | undefined;
  /** Paths whose reading fails. */
  readonly unreadable = new Set<string>();

  async makeDirectory(path: string): Promise<void> {
    if (this.unreadable.has(path)) throw new FileError("EACCES", path, `${path}: permission denied`);
  }

  async list(path: string): Promise<DirectoryEntry[]> {
    const prefix = `${path}/`;
    return [...this.contents.keys()]
      .filter((name) => name.startsWith(prefix))
      .map((name) => ({ name: name.slice(prefix.length), type: "file" as const }));
  }

  async read(path: string): Promise<Uint8Array> {
    if (this.unreadable.has(path)) throw new FileError("EIO", path, `${path}: input/output error`);
    return Buffer.from(this.contents.get(path) ?? "");
  }

  async append(path: string, data: string | Uint8Array, mode: number): Promise<void> {
    const text = typeof data === "string" ? data : Buffer.from(data).toString();
    const written = this.broken === undefined ? text : text.slice(0, text.length * this.broken.writtenPart);
    if (!this.contents.has(path)) this.modes.set(path, mode);
    this.contents.set(path, (this.contents.get(path) ?? "") + written);
    if (this.broken !== undefined) throw new FileError(this.broken.code, path, `${path}: no space left on device`);
  }

  async stat(path: string): Promise<FileInfo | undefined> {
    const text = this.contents.get(path);
    if (text === undefined) return undefined;
    return { type: "file", size: text.length, mode: this.modes.get(path) ?? 0, modified: 0, inode: 1, device: 1 };
  }

  async remove(path: string): Promise<void> {
    this.contents.delete(path);
  }
}
