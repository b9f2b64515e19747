import { ContainerConfigError } from "./container-config-error.ts";
import type { TextPart } from "./expansion.ts";

/** The end of a string and the pointer to it, which Linux counts as well. */
const stringBytes = 9;

/**
 * The room that texts of a container share. A few references to references are gigabytes once expanded, so each text
 * takes its part before it is made.
 */
export class TextRoom {
  readonly #limit: string;
  #left: number;

  /** @param limit for the error: `a path has at most 4096 bytes` */
  constructor(bytes: number, limit: string) {
    this.#left = bytes;
    this.#limit = limit;
  }

  /**
   * Takes the room of one text.
   * @param subject what the text is, which is not quoted
   * @throws ContainerConfigError when it does not fit
   */
  take(parts: Iterable<TextPart>, subject: string): void {
    this.#left -= stringBytes;
    for (const part of parts) {
      // Not further than the room goes: there may be very many long parts.
      if (this.#left < 0) break;
      this.#left -= byteLength(part);
    }
    if (this.#left < 0) throw new ContainerConfigError(`${subject} does not fit: ${this.#limit}`);
  }

  /** For a text that another one replaces. */
  giveBack(parts: Iterable<TextPart>): void {
    this.#left += stringBytes;
    for (const part of parts) this.#left += byteLength(part);
  }
}

/**
 * For a text that shares its room with no other.
 * @throws ContainerConfigError when it has more bytes
 */
export function requireLength(parts: Iterable<TextPart>, maxBytes: number, limit: string, subject: string): void {
  new TextRoom(maxBytes + stringBytes, limit).take(parts, subject);
}

function byteLength(part: TextPart): number {
  return typeof part === "string" ? Buffer.byteLength(part) : part.length;
}
