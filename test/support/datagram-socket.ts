import { closeSync, rmSync } from "node:fs";
import { addressOf, type ForeignFunction, openCLibrary } from "../../src/linux/processes/c-library.ts";
import { closeOnExec, familyUnix, nonBlocking, unixAddress } from "../../src/linux/processes/unix-address.ts";

const datagram = 2;

/** A Unix datagram socket, in the role of a service manager. */
export class DatagramSocket implements Disposable {
  readonly #name: string;
  readonly #descriptor: number;
  readonly #receive: ForeignFunction;
  readonly #into = Buffer.alloc(8192);

  /** @param name a path, or `@` and a name in the abstract namespace */
  constructor(name: string) {
    const library = openCLibrary();
    const address = unixAddress(name);
    this.#name = name;
    this.#receive = library("recv", ["int32", "pointer", "uint64", "int32"], "int32");
    const types = datagram | closeOnExec | nonBlocking;
    this.#descriptor = library("socket", ["int32", "int32", "int32"], "int32")(familyUnix, types, 0);
    const bind = library("bind", ["int32", "pointer", "uint32"], "int32");
    if (bind(this.#descriptor, addressOf(address), address.length) !== 0) throw new Error(`cannot bind ${name}`);
  }

  /** The messages since the last call. */
  read(): string[] {
    const messages: string[] = [];
    for (;;) {
      const length = this.#receive(this.#descriptor, addressOf(this.#into), BigInt(this.#into.length), 0);
      if (length < 0) return messages;
      messages.push(this.#into.toString("utf8", 0, length));
    }
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
    if (!this.#name.startsWith("@")) rmSync(this.#name);
  }
}
