import type { Readable } from "node:stream";

/**
 * Reads a whole HTTP body; a body longer than `maxBytes` ends the connection and rejects with the error of `tooLong`.
 */
export async function readBody(message: Readable, maxBytes: number, tooLong: () => Error): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of message) {
    const data: unknown = chunk;
    if (!(data instanceof Uint8Array)) continue;
    length += data.length;
    // Leaving the loop destroys the message and with it the connection.
    if (length > maxBytes) throw tooLong();
    chunks.push(data);
  }
  return Buffer.concat(chunks);
}
