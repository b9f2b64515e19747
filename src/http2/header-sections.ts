import { flags, type Frame, frameTypes, unpadded } from "./frames.ts";
import { HpackDecoder } from "./hpack.ts";
import { HttpSyntaxError } from "./syntax-error.ts";

export interface HeaderSection {
  readonly fields: ReadonlyMap<string, string>;
  readonly endsStream: boolean;
}

/** The header sections of one connection: HEADERS frames with the CONTINUATION frames that follow (RFC 9113 §4.3). */
export class HeaderSections {
  readonly #maxBytes: number;
  readonly #hpack: HpackDecoder;
  /** An unfinished one. */
  #open: { readonly parts: Buffer[]; bytes: number; readonly stream: number; readonly endsStream: boolean } | undefined;

  /** @param maxBytes of a section, as it is sent and decoded */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
    this.#hpack = new HpackDecoder(maxBytes);
  }

  /** @throws HttpSyntaxError when the frame, of whatever type, interrupts a section */
  expect({ type, stream }: Frame): void {
    const isContinued = type === frameTypes.continuation && stream === this.#open?.stream;
    if (this.#open !== undefined && !isContinued) throw new HttpSyntaxError("a header section breaks off");
  }

  /**
   * Takes a HEADERS or CONTINUATION frame.
   * @returns undefined: the section continues
   */
  take(taken: Frame): HeaderSection | undefined {
    const { type, flag, stream, payload } = taken;
    if (type !== frameTypes.headers) return this.#add(flag, payload);
    const part = headerPart(taken);
    this.#open = { parts: [], bytes: 0, stream, endsStream: (flag & flags.endStream) !== 0 };
    return this.#add(flag, part);
  }

  #add(flag: number, part: Buffer): HeaderSection | undefined {
    const section = this.#open;
    if (section === undefined) throw new HttpSyntaxError("a header section has no beginning");
    section.bytes += part.length;
    if (section.bytes > this.#maxBytes) throw new HttpSyntaxError(`its headers exceed ${this.#maxBytes} bytes`);
    const isWhole = (flag & flags.endHeaders) !== 0;
    if (!isWhole) {
      section.parts.push(Buffer.from(part));
      return undefined;
    }
    this.#open = undefined;
    const block = section.parts.length === 0 ? part : Buffer.concat([...section.parts, part]);
    return { fields: this.#hpack.decode(block), endsStream: section.endsStream };
  }
}

/** The part of a header section in a HEADERS frame. */
function headerPart(taken: Frame): Buffer {
  const priorityBytes = (taken.flag & flags.priority) === 0 ? 0 : 5;
  const part = unpadded(taken);
  if (part.length < priorityBytes) throw new HttpSyntaxError("a frame is cut off");
  return priorityBytes === 0 ? part : part.subarray(priorityBytes);
}
