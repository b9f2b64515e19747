import { RpcError } from "../ports/rpc.ts";

/** A flag and the length of what follows. */
const prefixBytes = 5;

/**
 * A message as sent: uncompressed, prefixed by its length
 * (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md, Length-Prefixed-Message).
 * @throws RpcError (ResourceExhausted) for an oversized one
 */
export function frame(message: Uint8Array, maxBytes: number): Buffer {
  if (message.length > maxBytes) throw tooLarge(message.length, maxBytes);
  const framed = Buffer.allocUnsafe(prefixBytes + message.length);
  framed[0] = 0;
  framed.writeUInt32BE(message.length, 1);
  framed.set(message, prefixBytes);
  return framed;
}

/** Assembles messages from fragments of any size. */
export class Frames {
  readonly #maxBytes: number;
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** Size of the message at the front, with its prefix; undefined: not known yet. */
  #wanted: number | undefined;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** True between messages. */
  get isEmpty(): boolean {
    return this.#bytes === 0;
  }

  /** @throws RpcError for a message that is too large, or compressed without having been requested */
  add(piece: Buffer): void {
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    this.#look();
  }

  /** The next complete message; undefined: none yet. */
  take(): Buffer | undefined {
    if (this.#wanted === undefined || this.#bytes < this.#wanted) return undefined;
    const all = this.#joined();
    const message = all.subarray(prefixBytes, this.#wanted);
    this.#pieces = all.length === this.#wanted ? [] : [all.subarray(this.#wanted)];
    this.#bytes -= this.#wanted;
    this.#wanted = undefined;
    this.#look();
    return message;
  }

  #look(): void {
    if (this.#wanted !== undefined || this.#bytes < prefixBytes) return;
    const start = this.#joined();
    const length = start.readUInt32BE(1);
    if (length > this.#maxBytes) throw tooLarge(length, this.#maxBytes);
    if (start[0] !== 0) throw new RpcError("Internal", "a message is compressed, which was not requested");
    this.#wanted = prefixBytes + length;
  }

  #joined(): Buffer {
    const [first] = this.#pieces;
    if (this.#pieces.length === 1 && first !== undefined) return first;
    const all = Buffer.concat(this.#pieces, this.#bytes);
    this.#pieces = [all];
    return all;
  }
}

function tooLarge(bytes: number, maxBytes: number): RpcError {
  return new RpcError("ResourceExhausted", `a message of ${bytes} bytes is larger than the limit of ${maxBytes}`);
}
