/**
 * D-Bus messages, as far as they are used here: values of basic types, and variants of them
 * (https://dbus.freedesktop.org/doc/dbus-specification.html, "Message Format").
 */

/** 64-bit numbers are bigints. A descriptor (`h`) is an index into those received with the message. */
export type BusValue = string | number | bigint | boolean;

export interface BusCall {
  readonly destination: string;
  readonly path: string;
  readonly interface: string;
  readonly member: string;
  /** One letter a value: `s`, `i`, `u`, `b` or `t`. */
  readonly signature: string;
  readonly values: readonly BusValue[];
}

export interface BusMessage {
  readonly kind: "call" | "answer" | "error" | "signal" | "unknown";
  readonly serial: number;
  readonly replyTo: number | undefined;
  readonly sender: string;
  readonly path: string;
  readonly interface: string;
  /** A method or a signal. */
  readonly member: string;
  readonly errorName: string;
  /** Undefined when a type is not supported here. */
  readonly values: readonly BusValue[] | undefined;
}

/** Far more than any expected answer; the protocol allows 128 MiB. */
const maxBytes = 1 << 20;
const fixedBytes = 16;
const kinds = ["unknown", "call", "answer", "error", "signal"] as const;
const field = { path: 1, interface: 2, member: 3, errorName: 4, replyTo: 5, destination: 6, sender: 7, signature: 8 };
/** Alignment of each type in bytes. */
const alignments: Readonly<Record<string, number>> = {
  ...{ y: 1, g: 1, v: 1 },
  ...{ b: 4, i: 4, u: 4, s: 4, o: 4, h: 4, a: 4 },
  ...{ t: 8, x: 8, d: 8, "(": 8 },
};

export function encodeCall(serial: number, call: BusCall): Buffer {
  const { path, destination, member, signature } = call;
  const fields = [
    [field.path, "o", path],
    [field.interface, "s", call.interface],
    [field.member, "s", member],
    [field.destination, "s", destination],
    ...(signature === "" ? [] : ([[field.signature, "g", signature]] as const)),
  ] as const;
  return encodeMessage(1, serial, fields, [signature, call.values]);
}

type HeaderField = readonly [code: number, type: string, value: BusValue];

/** @param kind as the protocol numbers it: 1 a call, 2 an answer, 3 an error, 4 a signal */
export function encodeMessage(
  kind: number,
  serial: number,
  fields: readonly HeaderField[],
  [signature, values]: readonly [signature: string, values: readonly BusValue[]],
): Buffer {
  const body = new Writer();
  for (const [index, type] of [...signature].entries()) body.write(type, values[index] ?? "");
  const header = new Writer();
  for (const byte of ["l".charCodeAt(0), kind, 0, 1]) header.write("y", byte);
  header.write("u", body.length);
  header.write("u", serial);
  const list = new Writer(fixedBytes);
  for (const [code, type, value] of fields) {
    list.align(8);
    list.write("y", code);
    list.write("g", type);
    list.write(type, value);
  }
  header.write("u", list.length);
  header.append(list);
  header.align(8);
  header.append(body);
  return header.bytes();
}

/** Encodes values in sequence, little-endian. */
class Writer {
  readonly #bytes: number[] = [];
  readonly #offset: number;

  /** @param offset of the first byte in the message, which determines the alignment */
  constructor(offset = 0) {
    this.#offset = offset;
  }

  get length(): number {
    return this.#bytes.length;
  }

  align(to: number): void {
    while ((this.#offset + this.#bytes.length) % to !== 0) this.#bytes.push(0);
  }

  append(other: Writer): void {
    this.#bytes.push(...other.#bytes);
  }

  write(type: string, value: BusValue): void {
    this.align(alignments[type] ?? 1);
    if (type === "y") this.#bytes.push(Number(value));
    else if (type === "t") this.#number(BigInt(value), 8);
    else if (type === "g") this.#text(String(value), 1);
    else if (type === "s" || type === "o") this.#text(String(value), 4);
    else this.#number(BigInt.asUintN(32, BigInt(value)), 4);
  }

  bytes(): Buffer {
    return Buffer.from(this.#bytes);
  }

  #number(value: bigint, bytes: number): void {
    for (let at = 0; at < bytes; at++) this.#bytes.push(Number((value >> BigInt(8 * at)) & 0xffn));
  }

  #text(text: string, lengthBytes: number): void {
    const bytes = Buffer.from(text);
    this.#number(BigInt(bytes.length), lengthBytes);
    this.#bytes.push(...bytes, 0);
  }
}

/**
 * The message at the beginning of the received bytes, with its length in bytes; undefined while it is incomplete.
 * @throws Error for an invalid message
 */
export function decodeMessage(bytes: Buffer): { readonly message: BusMessage; readonly length: number } | undefined {
  if (bytes.length < fixedBytes) return undefined;
  const order = String.fromCharCode(bytes[0] ?? 0);
  if (order !== "l" && order !== "B") throw new Error(`the system bus sent an invalid message: byte order ${order}`);
  const reader = new Reader(bytes, order === "l");
  const kind = kinds[bytes[1] ?? 0] ?? "unknown";
  reader.at = 4;
  const bodyBytes = reader.uint32();
  const serial = reader.uint32();
  const fieldBytes = reader.uint32();
  const bodyAt = fixedBytes + aligned(fieldBytes, 8);
  const length = bodyAt + bodyBytes;
  if (length > maxBytes) throw new Error(`the system bus sent a message of ${length} bytes`);
  if (bytes.length < length) return undefined;
  const fields = reader.fields(fixedBytes + fieldBytes);
  reader.at = bodyAt;
  const text = (code: number): string => String(fields.get(code) ?? "");
  const replyTo = fields.get(field.replyTo);
  const message: BusMessage = {
    kind,
    serial,
    replyTo: typeof replyTo === "number" ? replyTo : undefined,
    sender: text(field.sender),
    path: text(field.path),
    interface: text(field.interface),
    member: text(field.member),
    errorName: text(field.errorName),
    values: reader.values(text(field.signature)),
  };
  return { message, length };
}

function aligned(offset: number, to: number): number {
  return Math.ceil(offset / to) * to;
}

/** Decodes values of a message; reading past its end is a RangeError. */
class Reader {
  at = 0;
  readonly #bytes: Buffer;
  readonly #view: DataView;
  readonly #isLittle: boolean;

  constructor(bytes: Buffer, isLittle: boolean) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#isLittle = isLittle;
  }

  uint32(): number {
    this.at = aligned(this.at, 4);
    this.at += 4;
    return this.#view.getUint32(this.at - 4, this.#isLittle);
  }

  /** The header's fields by their codes. */
  fields(endAt: number): Map<number, BusValue> {
    const found = new Map<number, BusValue>();
    while (this.at < endAt) {
      this.at = aligned(this.at, 8);
      const code = this.#view.getUint8(this.at++);
      const value = this.#value("v");
      if (value !== undefined) found.set(code, value);
    }
    return found;
  }

  /** Undefined when a type is not supported here: the position of later values is unknown then. */
  values(signature: string): BusValue[] | undefined {
    const values: BusValue[] = [];
    for (const type of signature) {
      const value = this.#value(type);
      if (value === undefined) return undefined;
      values.push(value);
    }
    return values;
  }

  #value(type: string): BusValue | undefined {
    this.at = aligned(this.at, alignments[type] ?? 1);
    switch (type) {
      case "y":
        return this.#view.getUint8(this.at++);
      case "b":
        return this.uint32() !== 0;
      case "i":
        return this.uint32() | 0;
      case "u":
      case "h":
        return this.uint32();
      case "t":
        this.at += 8;
        return this.#view.getBigUint64(this.at - 8, this.#isLittle);
      case "s":
      case "o":
        return this.#text(this.uint32());
      case "g":
        return this.#text(this.#view.getUint8(this.at++));
      case "v": {
        const inner = this.#text(this.#view.getUint8(this.at++));
        return inner.length === 1 ? this.#value(inner) : undefined;
      }
      default:
        return undefined;
    }
  }

  #text(length: number): string {
    const start = this.at;
    this.at += length + 1;
    if (this.at > this.#bytes.length) throw new RangeError("a text of the system bus is longer than its message");
    return this.#bytes.toString("utf8", start, start + length);
  }
}
