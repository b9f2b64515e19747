import { closeSync } from "node:fs";
import { onAbort } from "../../base/abort.ts";
import type { Clock } from "../../ports/clock.ts";
import type { BusSocket } from "./bus-socket.ts";
import { type BusCall, type BusMessage, type BusValue, decodeMessage, encodeCall } from "./message.ts";

/** More than a healthy bus and its services need. */
const answerLimitMs = 5000;
/** Polling interval for an answer. Calls are made only at the start and after a canceled shutdown. */
const lookMs = 5;
const bus = { destination: "org.freedesktop.DBus", path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus" };

export interface BusAnswer {
  readonly values: readonly BusValue[];
  /** The caller closes them. */
  readonly descriptors: readonly number[];
}

/**
 * A connection to the system bus. First it makes calls, one after the other; then it only receives signals, for which
 * Node.js waits.
 */
export class BusConnection implements Disposable {
  readonly #clock: Clock;
  readonly #socket: BusSocket;
  #rest: Buffer = Buffer.alloc(0);
  readonly #descriptors: number[] = [];
  #serial = 0;
  /** Signals received between answers. */
  readonly #signals: BusMessage[] = [];

  private constructor(clock: Clock, socket: BusSocket) {
    this.#clock = clock;
    this.#socket = socket;
  }

  /** @throws Error when the bus does not answer, or does not admit this process */
  static async open(clock: Clock, socket: BusSocket, signal: AbortSignal): Promise<BusConnection> {
    const connection = new BusConnection(clock, socket);
    try {
      const user = Buffer.from(String(process.getuid?.() ?? 0)).toString("hex");
      await connection.#says(`\0AUTH EXTERNAL ${user}\r\n`, "OK", signal);
      await connection.#says("NEGOTIATE_UNIX_FD\r\n", "AGREE_UNIX_FD", signal);
      connection.#socket.write(Buffer.from("BEGIN\r\n"));
      await connection.call({ ...bus, member: "Hello", signature: "", values: [] }, signal);
      return connection;
    } catch (error) {
      connection[Symbol.dispose]();
      throw error;
    }
  }

  /** Whether answers come with the descriptors that belong to them. */
  get takesDescriptors(): boolean {
    return this.#socket.takesDescriptors;
  }

  /** Subscribes to signals that match the rule. */
  async match(rule: string, signal: AbortSignal): Promise<void> {
    await this.call({ ...bus, member: "AddMatch", signature: "s", values: [rule] }, signal);
  }

  /** @throws Error with the peer's message, or when there is no answer */
  async call(call: BusCall, signal: AbortSignal): Promise<BusAnswer> {
    const serial = ++this.#serial;
    this.#socket.write(encodeCall(serial, call));
    const what = `${call.interface}.${call.member}`;
    const answer = await this.#when(what, signal, () => {
      for (let message = this.#take(); message !== undefined; message = this.#take()) {
        if (message.kind === "signal") this.#signals.push(message);
        else if (message.replyTo === serial) return message;
      }
      return undefined;
    });
    const descriptors = this.#descriptors.splice(0);
    if (answer.kind === "answer") return { values: answer.values ?? [], descriptors };
    for (const descriptor of descriptors) closeSync(descriptor);
    throw new Error(`${what}: ${answer.errorName}: ${answer.values?.join(" ") ?? ""}`);
  }

  /** Signals, including those received between earlier answers. Ends with the connection; no calls can follow. */
  async *signals(signal: AbortSignal): AsyncIterable<BusMessage> {
    yield* this.#signals.splice(0);
    yield* this.#takeSignals();
    const socket = this.#socket.stream();
    using _abort = onAbort(signal, () => socket.destroy());
    try {
      for await (const bytes of socket as AsyncIterable<Buffer>) {
        this.#rest = Buffer.concat([this.#rest, bytes]);
        yield* this.#takeSignals();
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      socket.destroy();
    }
  }

  [Symbol.dispose](): void {
    for (const descriptor of this.#descriptors.splice(0)) closeSync(descriptor);
    this.#socket[Symbol.dispose]();
  }

  *#takeSignals(): Iterable<BusMessage> {
    for (let message = this.#take(); message !== undefined; message = this.#take()) {
      if (message.kind === "signal") yield message;
    }
  }

  /** Takes the next complete message from the received bytes. */
  #take(): BusMessage | undefined {
    const decoded = decodeMessage(this.#rest);
    if (decoded === undefined) return undefined;
    this.#rest = this.#rest.subarray(decoded.length);
    return decoded.message;
  }

  /** Sends a line of the authentication. */
  async #says(line: string, expected: string, signal: AbortSignal): Promise<void> {
    this.#socket.write(Buffer.from(line));
    const answer = await this.#when("the system bus", signal, () => {
      const end = this.#rest.indexOf("\r\n");
      if (end < 0) return undefined;
      const text = this.#rest.toString("utf8", 0, end);
      this.#rest = this.#rest.subarray(end + 2);
      return text;
    });
    if (!answer.startsWith(expected)) throw new Error(`the system bus rejects the connection: ${answer}`);
  }

  async #when<T>(what: string, signal: AbortSignal, look: () => T | undefined): Promise<T> {
    const endMs = this.#clock.monotonic() + answerLimitMs;
    for (;;) {
      const { bytes, descriptors } = this.#socket.read();
      this.#descriptors.push(...descriptors);
      if (bytes.length > 0) this.#rest = Buffer.concat([this.#rest, bytes]);
      const found = look();
      if (found !== undefined) return found;
      if (this.#clock.monotonic() > endMs) throw new Error(`${what} does not answer within ${answerLimitMs / 1000} s`);
      await this.#clock.sleep(`an answer of ${what}`, lookMs, signal);
    }
  }
}
