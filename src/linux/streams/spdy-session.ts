import type { Duplex } from "node:stream";
import { once } from "node:events";
import { setImmediate } from "node:timers/promises";
import { arriving } from "./pipe.ts";
import { SpdyDecoder, SpdyEncoder, SpdyError, type SpdyFrame } from "./spdy-frames.ts";

/** Consumes a stream's data; reading continues when the promise resolves. */
export type StreamSink = (bytes: Uint8Array) => Promise<void> | void;

export interface SpdyStream {
  /** Resolves when the peer has accepted the stream; rejects when it has refused. */
  readonly opened: Promise<void>;
  /** Resolves when the peer sends no more; never rejects. */
  readonly ended: Promise<void>;
  /** Resolves when more can be written; no effect once the stream or the connection is over. */
  write(bytes: Uint8Array): Promise<void>;
  /** Ends this direction. */
  end(): void;
}

/** Data is split into frames of at most this size, so that streams of one connection take turns. */
const maxDataBytes = 32 * 1024;
const refused = 3;

interface OpenStream {
  readonly sink: StreamSink;
  readonly opened: PromiseWithResolvers<void>;
  readonly ended: PromiseWithResolvers<void>;
  isOver: boolean;
}

/**
 * The client side of a SPDY/3.1 connection: only the client opens streams. The connection's flow control is the only
 * one, so a slow sink blocks every stream, as in Kubernetes' own library.
 */
export class SpdySession {
  readonly #socket: Duplex;
  readonly #encoder = new SpdyEncoder();
  readonly #streams = new Map<number, OpenStream>();
  #next = 1;
  #isOver = false;

  /** @param socket after the upgrade */
  constructor(socket: Duplex) {
    this.#socket = socket;
    socket.on("error", () => {});
  }

  open(headers: Readonly<Record<string, string>>, sink: StreamSink): SpdyStream {
    const id = this.#next;
    this.#next += 2;
    const stream = {
      sink,
      opened: Promise.withResolvers<void>(),
      ended: Promise.withResolvers<void>(),
      isOver: this.#isOver,
    };
    stream.opened.promise.catch(() => {});
    if (this.#isOver) this.#close(stream, new SpdyError("the connection is closed"));
    else this.#streams.set(id, stream);
    this.#send(this.#encoder.open(id, headers));
    let hasEnded = false;
    return {
      opened: stream.opened.promise,
      ended: stream.ended.promise,
      write: async (bytes) => {
        for (let offset = 0; offset < bytes.length; offset += maxDataBytes) {
          // Reads the peer's data first: writing after it has closed would end all reading.
          await setImmediate();
          if (stream.isOver || this.#isOver || hasEnded) return;
          const frame = this.#encoder.data(id, bytes.subarray(offset, offset + maxDataBytes), false);
          if (!this.#send(frame)) await this.#drained();
        }
      },
      end: () => {
        if (!hasEnded && !stream.isOver) this.#send(this.#encoder.data(id, new Uint8Array(), true));
        hasEnded = true;
      },
    };
  }

  /**
   * Reads until the peer or the connection ends; a reset counts as an end.
   * @throws SpdyError when the peer does not speak SPDY
   */
  async run(head: Uint8Array): Promise<void> {
    const decoder = new SpdyDecoder();
    let broken: SpdyError | undefined;
    try {
      for (const frame of decoder.push(head)) await this.#take(frame);
      for await (const chunk of arriving(this.#socket)) {
        for (const frame of decoder.push(chunk)) await this.#take(frame);
      }
    } catch (error) {
      // A reset is an end like any other: waiters for a stream learn that it is over.
      if (error instanceof SpdyError) broken = error;
    } finally {
      this.close();
    }
    if (broken !== undefined) throw broken;
  }

  /** Ends the connection at once. */
  close(): void {
    this.#isOver = true;
    for (const stream of this.#streams.values()) this.#close(stream, new SpdyError("the connection ended"));
    this.#streams.clear();
    this.#socket.destroy();
  }

  async #take(frame: SpdyFrame): Promise<void> {
    switch (frame.kind) {
      case "goaway":
        return;
      case "data": {
        const stream = this.#streams.get(frame.stream);
        if (stream !== undefined && !stream.isOver && frame.bytes.length > 0) await stream.sink(frame.bytes);
        if (frame.end) stream?.ended.resolve();
        return;
      }
      case "reply":
      case "headers":
        this.#streams.get(frame.stream)?.opened.resolve();
        if (frame.end) this.#streams.get(frame.stream)?.ended.resolve();
        return;
      case "reset": {
        const stream = this.#streams.get(frame.stream);
        this.#streams.delete(frame.stream);
        if (stream !== undefined) this.#close(stream, new SpdyError(`the stream was refused (${frame.status})`));
        return;
      }
      case "open":
        if (!this.#send(this.#encoder.reset(frame.stream, refused))) await this.#drained();
        return;
      case "ping":
        // Odd IDs are replies to the client's own pings.
        if (frame.id % 2 === 0 && !this.#send(this.#encoder.ping(frame.id))) await this.#drained();
    }
  }

  #close(stream: OpenStream, reason: SpdyError): void {
    stream.isOver = true;
    stream.opened.reject(reason);
    stream.ended.resolve();
  }

  #send(frame: Uint8Array): boolean {
    return this.#isOver || !this.#socket.writable || this.#socket.write(frame);
  }

  async #drained(): Promise<void> {
    if (!this.#socket.writableNeedDrain || this.#socket.destroyed) return;
    const enough = new AbortController();
    const events = ["drain", "close"].map((event) => once(this.#socket, event, { signal: enough.signal }));
    await Promise.race(events).catch(() => {});
    enough.abort();
    await Promise.allSettled(events);
  }
}
