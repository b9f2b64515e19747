import { connect, type Socket } from "node:net";
import { type CLibrary, openCLibrary } from "../processes/c-library.ts";
import type { BusSocket } from "./bus-socket.ts";
import { DescriptorSocket } from "./descriptor-socket.ts";

/**
 * Without `node:ffi` (Node.js older than 26.1) a socket that takes no descriptors.
 * @param modules access to Node.js' built-in modules
 * @throws Error if nothing listens
 */
export function openBusSocket(path: string, modules?: (name: string) => unknown): BusSocket {
  const library = cLibrary(modules);
  return library === undefined ? new PlainSocket(path) : new DescriptorSocket(path, library);
}

function cLibrary(modules?: (name: string) => unknown): CLibrary | undefined {
  try {
    return openCLibrary(modules);
  } catch {
    return undefined;
  }
}

class PlainSocket implements BusSocket {
  readonly takesDescriptors = false;
  readonly #socket: Socket;
  readonly #path: string;
  #error: Error | undefined;
  #isHandedOver = false;

  constructor(path: string) {
    this.#path = path;
    this.#socket = connect(path);
    this.#socket.on("error", (error) => (this.#error = error));
  }

  write(bytes: Buffer): void {
    this.#socket.write(bytes);
  }

  read(): { readonly bytes: Buffer; readonly descriptors: readonly number[] } {
    if (this.#error !== undefined) throw new Error(`no server at ${this.#path}`, { cause: this.#error });
    const bytes = this.#socket.read() as Buffer | null;
    return { bytes: bytes ?? Buffer.alloc(0), descriptors: [] };
  }

  stream(): Socket {
    this.#isHandedOver = true;
    return this.#socket;
  }

  [Symbol.dispose](): void {
    if (!this.#isHandedOver) this.#socket.destroy();
  }
}
