/** Just enough of DER (X.690) for certificates and signing requests. */

export const derTag = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  oid: 0x06,
  utf8String: 0x0c,
  sequence: 0x30,
  set: 0x31,
} as const;

/** One element: tag, length, content. */
export function der(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  if (content.length < 0x80) return Buffer.concat([Buffer.from([tag, content.length]), content]);
  const hex = content.length.toString(16);
  const length = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, "hex");
  return Buffer.concat([Buffer.from([tag, 0x80 | length.length]), length, content]);
}

export function sequence(...contents: readonly Uint8Array[]): Buffer {
  return der(derTag.sequence, ...contents);
}

/** A positive integer, as big-endian bytes. */
export function integer(bytes: Uint8Array): Buffer {
  let first = 0;
  while (first < bytes.length - 1 && bytes[first] === 0) first++;
  const digits = bytes.subarray(first);
  const needsSign = (digits[0] ?? 0) >= 0x80;
  return der(derTag.integer, needsSign ? Buffer.concat([Buffer.from([0]), digits]) : digits);
}

export function bitString(bytes: Uint8Array): Buffer {
  return der(derTag.bitString, Buffer.from([0]), bytes);
}

/** @param dotted `2.5.4.3` */
export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  const bytes = [first * 40 + second];
  for (const part of rest) {
    const group = [part & 0x7f];
    for (let left = part >>> 7; left > 0; left >>>= 7) group.unshift((left & 0x7f) | 0x80);
    bytes.push(...group);
  }
  return der(derTag.oid, Buffer.from(bytes));
}

/** UTCTime until 2049, GeneralizedTime from then on (RFC 5280 §4.1.2.5). */
export function time(date: Date): Buffer {
  const text = `${date.toISOString().slice(0, 19).replaceAll(/[-:T]/g, "")}Z`;
  return date.getUTCFullYear() < 2050 ? der(0x17, Buffer.from(text.slice(2))) : der(0x18, Buffer.from(text));
}

/** A decoded element. */
export interface DerElement {
  readonly tag: number;
  readonly content: Buffer;
  /** The element with its tag and length. */
  readonly whole: Buffer;
}

/** Decodes consecutive elements. @throws Error for invalid DER */
export function readDer(bytes: Buffer): DerElement[] {
  const elements: DerElement[] = [];
  let offset = 0;
  while (offset < bytes.length) {
    const tag = bytes[offset] ?? 0;
    const first = bytes[offset + 1];
    if (first === undefined) throw new Error("DER ends within an element");
    const extra = first < 0x80 ? 0 : first & 0x7f;
    if (extra > 4 || offset + 2 + extra > bytes.length) throw new Error("DER with a length that cannot be");
    const length = extra === 0 ? first : bytes.readUIntBE(offset + 2, extra);
    const start = offset + 2 + extra;
    if (start + length > bytes.length) throw new Error("DER ends within an element");
    elements.push({
      tag,
      content: bytes.subarray(start, start + length),
      whole: bytes.subarray(offset, start + length),
    });
    offset = start + length;
  }
  return elements;
}

/** The dotted form of an OBJECT IDENTIFIER's content. */
export function readOid(content: Buffer): string {
  const first = content[0] ?? 0;
  const parts = [Math.min(2, Math.floor(first / 40))];
  parts.push(first - (parts[0] ?? 0) * 40);
  let value = 0;
  for (const byte of content.subarray(1)) {
    value = value * 128 + (byte & 0x7f);
    if (byte < 0x80) {
      parts.push(value);
      value = 0;
    }
  }
  return parts.join(".");
}

export function pem(label: string, bytes: Uint8Array): string {
  const lines =
    Buffer.from(bytes)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}

/** The first PEM block of a label, decoded. */
export function readPem(label: string, text: string): Buffer | undefined {
  const block = new RegExp(`-----BEGIN ${label}-----([\\s\\S]*?)-----END ${label}-----`).exec(text)?.[1];
  return block === undefined ? undefined : Buffer.from(block, "base64");
}
