import { errorMessage } from "../base/errors.ts";
import type { Files } from "../ports/files.ts";
import { decodeLine } from "./codec.ts";
import type { JournalEntry } from "./entry.ts";
import type { LineLog, WrittenLine } from "./writer.ts";

/** The file operations that the journal needs. */
export type JournalFiles = Pick<Files, "append" | "list" | "makeDirectory" | "read" | "remove" | "stat">;

export interface SegmentLimits {
  readonly maxSegmentBytes: number;
  readonly maxSegments: number;
}

interface Segment {
  readonly firstSeq: number;
  readonly path: string;
}

/** What {@link SegmentLog.open} found on disk. */
export interface ReadBack {
  /** By ascending sequence number, without duplicates; only the newest if there are more than requested. */
  readonly entries: JournalEntry[];
  /** Greater than every number ever written here. */
  readonly nextSeq: number;
  /** For people: unreadable segments, and the number of invalid lines. */
  readonly problems: string[];
}

const segmentName = /^journal-([1-9][0-9]{0,15})\.jsonl$/;
const chunkBytes = 256 * 1024;
/** Minimum length of a line: bounds the number of entries in an unreadable segment by its size. */
const shortestLineBytes = 40;

/**
 * The journal's files: `journal-<first sequence number>.jsonl`, mode 0600, append-only. A line with an earlier number
 * replaces that entry (the count of a folded entry has grown, or a failed write was repeated).
 */
export class SegmentLog implements LineLog {
  readonly name = "journal";
  readonly #files: JournalFiles;
  readonly #directory: string;
  readonly #limits: SegmentLimits;
  #segments: Segment[] = [];
  #currentBytes = 0;
  #nextSeq = 1;
  /** The last line on disk may be incomplete. */
  #torn = false;

  constructor(files: JournalFiles, directory: string, limits: SegmentLimits) {
    this.#files = files;
    this.#directory = directory;
    this.#limits = limits;
  }

  /**
   * Reads the newest segments back until `wantEntries` are found. Invalid lines are counted and skipped. Rejects with
   * FileError when the directory cannot be created or listed; an unreadable segment is reported as a problem.
   */
  async open(wantEntries: number): Promise<ReadBack> {
    await this.#files.makeDirectory(this.#directory, 0o700);
    this.#segments = (await this.#files.list(this.#directory))
      .flatMap(({ name, type }) => {
        const match = type === "file" ? segmentName.exec(name) : null;
        return match === null ? [] : [{ firstSeq: Number(match[1]), path: `${this.#directory}/${name}` }];
      })
      .toSorted((a, b) => a.firstSeq - b.firstSeq);
    const found = new Map<number, JournalEntry>();
    const problems: string[] = [];
    let junkLines = 0;
    for (const segment of this.#segments.toReversed()) {
      if (found.size >= wantEntries) break;
      const lines = await this.#readLines(segment, problems);
      for (const line of lines.toReversed()) {
        const entry = decodeLine(line);
        if (entry === undefined) junkLines += line === "" ? 0 : 1;
        else if (!found.has(entry.seq)) found.set(entry.seq, entry);
      }
    }
    if (junkLines > 0) problems.push(`${junkLines} lines are truncated or not journal entries`);
    const entries = [...found.values()].toSorted((a, b) => a.seq - b.seq).slice(-wantEntries);
    this.#nextSeq = Math.max(this.#nextSeq, this.#segments.at(-1)?.firstSeq ?? 1, (entries.at(-1)?.seq ?? 0) + 1);
    return { entries, nextSeq: this.#nextSeq, problems };
  }

  /**
   * Appends the lines. Opens a new segment when the current one is full, and removes the oldest above the limit. After
   * a rejection (FileError) any part of the lines may be on disk; the caller may append them again.
   */
  async append(lines: readonly WrittenLine[]): Promise<void> {
    for (const chunk of chunksOf(lines)) {
      const text = chunk.map((line) => line.text).join("");
      const bytes = Buffer.byteLength(text);
      const segment = await this.#segmentFor(bytes);
      const separator = this.#torn ? "\n" : "";
      this.#torn = true;
      this.#currentBytes += bytes;
      await this.#files.append(segment.path, separator + text, 0o600);
      this.#torn = false;
      for (const { seq } of chunk) this.#nextSeq = Math.max(this.#nextSeq, seq + 1);
    }
  }

  /** Recreates the directory if it was removed. */
  async repair(): Promise<void> {
    await this.#files.makeDirectory(this.#directory, 0o700);
  }

  async #segmentFor(bytes: number): Promise<Segment> {
    const last = this.#segments.at(-1);
    if (
      last !== undefined &&
      (this.#currentBytes === 0 || this.#currentBytes + bytes <= this.#limits.maxSegmentBytes)
    ) {
      return last;
    }
    const firstSeq = Math.max(this.#nextSeq, (last?.firstSeq ?? 0) + 1);
    const segment = { firstSeq, path: `${this.#directory}/journal-${firstSeq}.jsonl` };
    this.#segments.push(segment);
    this.#currentBytes = 0;
    this.#torn = false;
    while (this.#segments.length > this.#limits.maxSegments) {
      const oldest = this.#segments.shift();
      // The next start lists the directory again and removes it then.
      if (oldest !== undefined) await this.#files.remove(oldest.path).catch(() => {});
    }
    return segment;
  }

  async #readLines(segment: Segment, problems: string[]): Promise<string[]> {
    try {
      const bytes = await this.#files.read(segment.path, 2 * this.#limits.maxSegmentBytes);
      const text = new TextDecoder().decode(bytes);
      if (segment === this.#segments.at(-1)) {
        this.#currentBytes = bytes.length;
        this.#torn = text !== "" && !text.endsWith("\n");
      }
      return text.split("\n");
    } catch (error) {
      problems.push(`cannot read ${segment.path}: ${errorMessage(error)}`);
      await this.#passUnread(segment);
      return [];
    }
  }

  /**
   * Numbering continues above the highest number that an unreadable segment may contain, and nothing more is appended
   * to it.
   */
  async #passUnread(segment: Segment): Promise<void> {
    const size = await this.#files.stat(segment.path).then(
      (info) => info?.size ?? 0,
      () => 2 * this.#limits.maxSegmentBytes,
    );
    this.#nextSeq = Math.max(this.#nextSeq, segment.firstSeq + Math.ceil(size / shortestLineBytes) + 1);
    if (segment === this.#segments.at(-1)) this.#currentBytes = this.#limits.maxSegmentBytes;
  }
}

function chunksOf(lines: readonly WrittenLine[]): WrittenLine[][] {
  const chunks: WrittenLine[][] = [];
  let chunk: WrittenLine[] = [];
  let length = 0;
  for (const line of lines) {
    if (chunk.length > 0 && length + line.text.length > chunkBytes) {
      chunks.push(chunk);
      chunk = [];
      length = 0;
    }
    chunk.push(line);
    length += line.text.length;
  }
  if (chunk.length > 0) chunks.push(chunk);
  return chunks;
}
