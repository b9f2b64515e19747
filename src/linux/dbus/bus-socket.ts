import type { Socket } from "node:net";

/** A connection's socket: polled while calls are made, then a stream of signals. */
export interface BusSocket extends Disposable {
  /** Whether file descriptors arrive that come with messages. */
  readonly takesDescriptors: boolean;
  write(bytes: Buffer): void;
  /** Received so far; the caller closes the descriptors. @throws Error when nothing listens */
  read(): { readonly bytes: Buffer; readonly descriptors: readonly number[] };
  /** Hands over to a stream, which the caller destroys. */
  stream(): Socket;
}
