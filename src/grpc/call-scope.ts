import { onAbort } from "../base/abort.ts";
import type { Clock } from "../ports/clock.ts";
import { type RpcCallOptions, RpcError } from "../ports/rpc.ts";

/** Why podwright ended a call itself: its caller's signal, its deadline, or a consumer that left the stream. */
export type CallEnd = "canceled" | "deadline" | "left";

/** The peer counts the same deadline and may end the call a moment before podwright's timer does. */
const clockSlackMs = 50;

/**
 * The life of one call: it ends with its caller's signal, at its deadline, or when its consumer leaves it, and
 * remembers which.
 */
export class CallScope implements Disposable {
  readonly timeoutMs: number | undefined;
  #end: CallEnd | undefined;
  #reason: unknown;
  #onEnd: ((error: RpcError) => void) | undefined;
  readonly #listening: Disposable | undefined;
  readonly #clock: Clock;
  readonly #startedMs: number;
  readonly #timer: Disposable | undefined;

  /** @param method the name of the wait in diagnostics */
  constructor(clock: Clock, method: string, options: RpcCallOptions) {
    this.#clock = clock;
    this.#startedMs = clock.monotonic();
    this.timeoutMs = options.timeoutMs;
    const { signal } = options;
    if (signal?.aborted === true) {
      this.#abort("canceled", signal.reason);
    } else if (options.timeoutMs !== undefined && options.timeoutMs <= 0) {
      this.#abort("deadline", undefined);
    } else {
      this.#listening = signal && onAbort(signal, () => this.#abort("canceled", signal.reason));
      if (options.timeoutMs === undefined) return;
      this.#timer = clock.timer(`gRPC ${method}`, options.timeoutMs, () => this.#abort("deadline", undefined));
    }
  }

  /** @throws RpcError once this side has ended the call */
  throwIfEnded(): void {
    if (this.#end !== undefined) throw ended();
  }

  /** Calls back as soon as this side ends the call; at once if it has. One at a time. */
  whenEnded(callback: (error: RpcError) => void): void {
    this.#onEnd = callback;
    if (this.#end !== undefined) callback(ended());
  }

  /**
   * The result of `work`, or a rejection as soon as this side ends the call. One at a time.
   * @param undo called in that case, because the work itself continues
   */
  async within<T>(work: Promise<T>, undo?: () => void): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    work.then(resolve, reject);
    this.whenEnded((error) => {
      reject(error);
      undo?.();
    });
    return await promise;
  }

  /** Undefined while the call lives, and when the peer or the connection ended it. */
  get end(): CallEnd | undefined {
    return this.#end;
  }

  /** The reason of the caller's signal. */
  get reason(): unknown {
    return this.#reason;
  }

  /** True at the deadline, or so close to it that the peer's own timer may have ended the call. */
  get timeIsUp(): boolean {
    return this.timeoutMs !== undefined && this.#clock.monotonic() - this.#startedMs >= this.timeoutMs - clockSlackMs;
  }

  /**
   * The deadline for the peer, `grpc-timeout` (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md); undefined:
   * there is none.
   */
  get timeout(): string | undefined {
    return this.timeoutMs === undefined ? undefined : grpcTimeout(this.timeoutMs);
  }

  /** The consumer stops reading the stream. */
  leave(): void {
    this.#abort("left", undefined);
  }

  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]();
    this.#listening?.[Symbol.dispose]();
  }

  #abort(end: CallEnd, reason: unknown): void {
    if (this.#end !== undefined) return;
    this.#end = end;
    this.#reason = reason;
    this[Symbol.dispose]();
    this.#onEnd?.(ended());
  }
}

function ended(): RpcError {
  return new RpcError("Canceled", "the call was ended");
}

/** A gRPC TimeoutValue has at most eight digits; above 99,999,999 s (three years) the header is omitted. */
function grpcTimeout(timeoutMs: number): string | undefined {
  const most = 99_999_999;
  const milliseconds = Math.ceil(timeoutMs);
  if (milliseconds <= most) return `${milliseconds}m`;
  const seconds = Math.ceil(timeoutMs / 1000);
  return seconds <= most ? `${seconds}S` : undefined;
}
