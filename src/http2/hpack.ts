import { type Field, huffmanCodes, staticTable } from "./hpack-tables.ts";
import { HttpSyntaxError } from "./syntax-error.ts";
import { varint } from "../base/varint.ts";

/** Overhead of an entry of the dynamic table (RFC 7541 §4.1). */
const entryOverhead = 32;
/** The default of SETTINGS_HEADER_TABLE_SIZE. */
const maxTableBytes = 4096;
const maxSizeUpdates = 2;
const longestVarint = 5;
/** Shorter lengths fit into the seven bits of one byte. */
const shortLength = 0x7f;

/** Decodes the header blocks of one HTTP/2 connection in order (RFC 7541), with a table of the default size. */
export class HpackDecoder {
  #limit = maxTableBytes;
  #bytes = 0;
  /** The newest entry first. */
  readonly #entries: Field[] = [];
  readonly #maxListBytes: number;

  /** @param maxListBytes the fields of a block, decoded: a few bytes can stand for megabytes */
  constructor(maxListBytes: number) {
    this.#maxListBytes = maxListBytes;
  }

  /**
   * The fields of a block; values of one name are joined by commas (RFC 9110 §5.2).
   * @throws HttpSyntaxError for an invalid block, or one of too many fields
   */
  decode(block: Buffer): Map<string, string> {
    const cursor = new BlockCursor(block);
    const fields = new Map<string, string>();
    let bytes = 0;
    const put = (field: Field): void => {
      bytes += sizeOf(field);
      if (bytes > this.#maxListBytes) throw new HttpSyntaxError(`its headers exceed ${this.#maxListBytes} bytes`);
      const known = fields.get(field.name);
      fields.set(field.name, known === undefined ? field.value : `${known}, ${field.value}`);
    };
    for (let updates = 0; !cursor.isAtEnd;) {
      const first = cursor.peek();
      if (first >= 0x80) {
        put(this.#entry(cursor.integer(7)));
      } else if (first >= 0x40) {
        const field = this.#literal(cursor, 6);
        this.#add(field);
        put(field);
      } else if (first >= 0x20) {
        if (fields.size > 0 || ++updates > maxSizeUpdates) throw broken();
        this.#resize(cursor.integer(5));
      } else {
        put(this.#literal(cursor, 4));
      }
    }
    return fields;
  }

  #literal(cursor: BlockCursor, prefixBits: number): Field {
    const index = cursor.integer(prefixBits);
    const name = index === 0 ? cursor.text() : this.#entry(index).name;
    return { name, value: cursor.text() };
  }

  #entry(index: number): Field {
    const entry = staticTable[index - 1] ?? this.#entries[index - 1 - staticTable.length];
    if (entry === undefined) throw broken();
    return entry;
  }

  #add(field: Field): void {
    this.#entries.unshift(field);
    this.#bytes += sizeOf(field);
    this.#evict();
  }

  #resize(limit: number): void {
    if (limit > maxTableBytes) throw broken();
    this.#limit = limit;
    this.#evict();
  }

  #evict(): void {
    while (this.#bytes > this.#limit) {
      const oldest = this.#entries.pop();
      if (oldest === undefined) return;
      this.#bytes -= sizeOf(oldest);
    }
  }
}

/**
 * Encodes fields in their order as literals, neither indexed nor compressed (RFC 7541 §6.2.2).
 * @throws TypeError for what is not Latin-1
 */
export function encodeFields(fields: Readonly<Record<string, string>>): Buffer {
  const names = Object.keys(fields);
  let bytes = names.length;
  for (const name of names) bytes += literalBytes(name) + literalBytes(fields[name] ?? "");
  const block = Buffer.allocUnsafe(bytes);
  let at = 0;
  for (const name of names) {
    block[at] = 0;
    at = writeLiteral(block, writeLiteral(block, at + 1, name), fields[name] ?? "");
  }
  return block;
}

export function encodeField(name: string, value: string): Buffer {
  return encodeFields({ [name]: value });
}

/** Of a string with its length before it. */
function literalBytes(text: string): number {
  if (/[^\0-\u00ff]/u.test(text)) throw new TypeError("a header has characters that do not fit into a byte");
  return (text.length < shortLength ? 1 : encodeLength(text.length).length) + text.length;
}

/** @returns the place after it */
function writeLiteral(block: Buffer, at: number, text: string): number {
  const { length } = text;
  if (length < shortLength) {
    block[at] = length;
    return at + 1 + block.write(text, at + 1, "latin1");
  }
  const encoded = encodeLength(length);
  block.set(encoded, at);
  return at + encoded.length + block.write(text, at + encoded.length, "latin1");
}

/** For the beginning of the next header block, if the server reduces the table that it keeps (RFC 7541 §4.2): nothing is in it. */
export const emptyTable = Buffer.of(0x20);

/** A length of {@link shortLength} or more: all seven bits, continued (RFC 7541 §5.1). */
function encodeLength(value: number): readonly number[] {
  return [shortLength, ...varint(value - shortLength)];
}

function sizeOf({ name, value }: Field): number {
  return name.length + value.length + entryOverhead;
}

function broken(): HttpSyntaxError {
  return new HttpSyntaxError("its headers violate HPACK");
}

class BlockCursor {
  readonly #block: Buffer;
  #at = 0;

  constructor(block: Buffer) {
    this.#block = block;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#block.length;
  }

  peek(): number {
    const byte = this.#block[this.#at];
    if (byte === undefined) throw broken();
    return byte;
  }

  /** RFC 7541 §5.1: in the last bits of this byte, continued in the following ones when these are all ones. */
  integer(prefixBits: number): number {
    const full = 2 ** prefixBits - 1;
    let value = this.#next() & full;
    if (value < full) return value;
    for (let count = 0, factor = 1; count < longestVarint; count++, factor *= 128) {
      const byte = this.#next();
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
    throw broken();
  }

  /** RFC 7541 §5.2. Bytes are read as Latin-1. */
  text(): string {
    const isCompressed = this.peek() >= 0x80;
    const length = this.integer(7);
    const end = this.#at + length;
    if (end > this.#block.length) throw broken();
    const start = this.#at;
    this.#at = end;
    if (isCompressed) return huffmanText(this.#block.subarray(start, end));
    return this.#block.toString("latin1", start, end);
  }

  #next(): number {
    const byte = this.peek();
    this.#at++;
    return byte;
  }
}

function huffmanText(bytes: Buffer): string {
  const text: number[] = [];
  let code = 0;
  let length = 0;
  for (const byte of bytes) {
    for (let bit = 7; bit >= 0; bit--) {
      code = code * 2 + ((byte >> bit) & 1);
      const codes = huffmanCodes[++length];
      if (codes === undefined) throw broken();
      const found = codes.bytes[code - codes.first];
      if (found === undefined) continue;
      text.push(found);
      code = 0;
      length = 0;
    }
  }
  // The last byte is padded with ones.
  if (length > 7 || code !== 2 ** length - 1) throw broken();
  return Buffer.from(text).toString("latin1");
}
