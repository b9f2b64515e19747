import { closeSync, writeSync } from "node:fs";
import { Socket } from "node:net";
import { addressOf, type CLibrary, type ForeignFunction } from "../processes/c-library.ts";
import { closeOnExec, familyUnix, nonBlocking, unixAddress } from "../processes/unix-address.ts";
import type { BusSocket } from "./bus-socket.ts";

// <sys/socket.h>
const stream = 1;
/** MSG_DONTWAIT and MSG_CMSG_CLOEXEC. */
const receiveFlags = 0x40 | 0x40000000;
const levelSocket = 1;
const rights = 1;
const bufferBytes = 64 * 1024;
/** Layout of a control message: length, level, type; then descriptors of four bytes each. */
const controlHeadBytes = 16;
const controlBytes = 256;

/**
 * A Unix socket connection that can receive file descriptors (unix(7), SCM_RIGHTS). Node.js sockets drop them, so this
 * calls the C library (`node:ffi`, Node.js 26.1 or newer). Nothing here blocks: reads are polled.
 */
export class DescriptorSocket implements BusSocket {
  readonly takesDescriptors = true;
  #descriptor: number;
  readonly #receive: ForeignFunction;
  readonly #into = Buffer.alloc(bufferBytes);
  readonly #control = Buffer.alloc(controlBytes);

  /** @throws Error if nothing listens */
  constructor(path: string, library: CLibrary) {
    const address = unixAddress(path);
    this.#receive = library("recvmsg", ["int32", "pointer", "int32"], "int32");
    this.#descriptor = library("socket", ["int32", "int32", "int32"], "int32")(
      familyUnix,
      stream | closeOnExec | nonBlocking,
      0,
    );
    if (this.#descriptor < 0) throw new Error("cannot make a socket");
    const connect = library("connect", ["int32", "pointer", "uint32"], "int32");
    const isConnected = connect(this.#descriptor, addressOf(address), address.length) === 0;
    if (isConnected) return;
    this[Symbol.dispose]();
    throw new Error(`no server at ${path}`);
  }

  write(bytes: Buffer): void {
    const written = writeSync(this.#descriptor, bytes);
    if (written < bytes.length) throw new Error("the socket's send buffer is full");
  }

  /**
   * Data and descriptors received so far; empty when there are none or the peer is gone. The caller closes the
   * descriptors.
   */
  read(): { readonly bytes: Buffer; readonly descriptors: readonly number[] } {
    const vector = new BigUint64Array([addressOf(this.#into), BigInt(bufferBytes)]);
    // struct msghdr of 64 bits: name, its length, vectors, their number, control messages, their length, flags.
    const head = new BigUint64Array([
      0n,
      0n,
      addressOf(vector),
      1n,
      addressOf(this.#control),
      BigInt(controlBytes),
      0n,
    ]);
    const length = this.#receive(this.#descriptor, addressOf(head), receiveFlags);
    if (length <= 0) return { bytes: Buffer.alloc(0), descriptors: [] };
    const descriptors = descriptorsIn(this.#control.subarray(0, Number(head[5] ?? 0n)));
    return { bytes: Buffer.from(this.#into.subarray(0, length)), descriptors };
  }

  /** Hands the descriptor over to the caller. */
  detach(): number {
    const descriptor = this.#descriptor;
    this.#descriptor = -1;
    return descriptor;
  }

  stream(): Socket {
    return new Socket({ fd: this.detach(), readable: true, writable: false });
  }

  [Symbol.dispose](): void {
    if (this.#descriptor >= 0) closeSync(this.#descriptor);
    this.#descriptor = -1;
  }
}

/** From the first control message: one read returns at most one. */
function descriptorsIn(control: Buffer): number[] {
  if (control.length < controlHeadBytes) return [];
  const words = new Int32Array(control.buffer, control.byteOffset, Math.floor(control.length / 4));
  const [length = 0, , level, type] = words;
  if (level !== levelSocket || type !== rights) return [];
  return [...words.subarray(controlHeadBytes / 4, Math.floor(length / 4))];
}
