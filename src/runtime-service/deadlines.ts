import { onAbort } from "../base/abort.ts";
import type { DescService } from "@bufbuild/protobuf";
import { errorMessage } from "../base/errors.ts";
import { TransientList } from "../base/transient-list.ts";
import type { Observer } from "../journal/observer.ts";
import type { Clock } from "../ports/clock.ts";
import { CriError, isCriError, type Cri, type CriImageService, type CriRuntimeService } from "../ports/cri.ts";
import type { RpcCallOptions } from "../ports/rpc.ts";
import { ImageService, RuntimeService } from "../ports/gen/runtime/v1/api_pb.js";
import { callLimitMs, describeRequest } from "./call-limits.ts";
import { isUnary } from "../ports/rpc-methods.ts";

/** A call in progress. */
export interface OutstandingCall {
  /** The method as CRI spells it, e.g. `StopContainer`. */
  readonly method: string;
  /** The container, sandbox, image or pod that it is about; may be empty. */
  readonly detail: string;
  /** When it began, on the clock's monotonic scale. */
  readonly sinceMonotonicMs: number;
}

/** A {@link Cri} whose unary calls always settle or are visibly waited for. */
export interface TrackedCri extends Cri {
  /**
   * Unary calls in progress, the oldest first: a hanging runtime shows here long before a duration is recorded
   * (https://github.com/kubernetes/kubernetes/issues/87108). Streams do not wait for a response and are not listed.
   */
  outstanding(): readonly OutstandingCall[];
}

type UnaryCall = (request: object, options?: RpcCallOptions) => Promise<unknown>;

/**
 * Gives every unary call of `cri` upstream's deadline by `clock`, or the caller's `timeoutMs` when that is shorter. A
 * call settles at its deadline (`DeadlineExceeded`) and at its signal's abort (`Canceled`) even when the runtime's side
 * never does. Streams pass through: their callers' signals end them.
 * @param requestTimeoutMs `runtimeRequestTimeout`, upstream's default 2 minutes
 */
export function withDeadlines(
  cri: Cri,
  clock: Clock,
  requestTimeoutMs: number,
  observer?: Pick<Observer, "called">,
): TrackedCri {
  const calls = new TransientList<OutstandingCall>();

  function wrap<Service extends object>(service: DescService, inner: Service): Service {
    const wrapped: Record<string, unknown> = {};
    for (const method of service.methods) {
      // Both sides are the mapped type over this very descriptor; TypeScript can't follow the loop.
      const call = (inner as Record<string, UnaryCall>)[method.localName]?.bind(inner);
      if (call === undefined) continue;
      const tracked: UnaryCall = (request, options = {}) => track(method.name, request, options, call);
      wrapped[method.localName] = isUnary(method) ? tracked : call;
    }
    return wrapped as Service;
  }

  async function track(method: string, request: object, options: RpcCallOptions, call: UnaryCall): Promise<unknown> {
    const entry: OutstandingCall = { method, detail: describeRequest(request), sinceMonotonicMs: clock.monotonic() };
    const outstanding = calls.add(entry);
    let failed = true;
    try {
      const limitMs = shorter(callLimitMs(method, request, requestTimeoutMs), options.timeoutMs);
      const response = await settle(clock, entry, limitMs, options.signal, (limited) => call(request, limited));
      failed = false;
      return response;
    } finally {
      outstanding[Symbol.dispose]();
      const durationMs = clock.monotonic() - entry.sinceMonotonicMs;
      observer?.called(method, durationMs, failed);
    }
  }

  return {
    runtime: wrap<CriRuntimeService>(RuntimeService, cri.runtime),
    images: wrap<CriImageService>(ImageService, cri.images),
    outstanding: () => [...calls],
  };
}

/** Runs a call until it answers, `signal` aborts or `limitMs` passes, whichever is first; always settles then. */
async function settle(
  clock: Clock,
  { method, detail }: OutstandingCall,
  limitMs: number | undefined,
  signal: AbortSignal | undefined,
  call: (options: RpcCallOptions) => Promise<unknown>,
): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const controller = new AbortController();
  const end = (error: CriError): void => {
    reject(error);
    controller.abort(error);
  };
  if (signal?.aborted === true) throw canceled(method, signal.reason);
  using _abort = onAbort(signal, () => end(canceled(method, signal?.reason)));
  const expire = (): void => end(deadlineExceeded(method, detail, limitMs ?? 0));
  using _timer = limitMs === undefined ? undefined : clock.timer(`CRI ${method}`, limitMs, expire);
  const limit = limitMs === undefined ? {} : { timeoutMs: limitMs };
  call({ ...limit, signal: controller.signal }).then(resolve, (error: unknown) => reject(asCriError(error, method)));
  return await promise;
}

function canceled(method: string, reason: unknown): CriError {
  return new CriError("Canceled", method, `canceled by podwright: ${errorMessage(reason)}`, { cause: reason });
}

function deadlineExceeded(method: string, detail: string, limitMs: number): CriError {
  const what = detail === "" ? "" : ` for ${detail}`;
  return new CriError(
    "DeadlineExceeded",
    method,
    `container runtime did not answer ${method}${what} within ${limitMs / 1000} s`,
  );
}

/** The port rejects with CriError alone; anything else is a defect of the implementation below, reported as Internal. */
function asCriError(error: unknown, method: string): CriError {
  return isCriError(error) ? error : new CriError("Internal", method, errorMessage(error), { cause: error });
}

function shorter(limitMs: number | undefined, timeoutMs: number | undefined): number | undefined {
  if (limitMs === undefined || timeoutMs === undefined) return limitMs ?? timeoutMs;
  return Math.min(limitMs, timeoutMs);
}
