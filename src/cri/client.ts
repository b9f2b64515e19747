import type {
  DescMessage,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { Cri, CriCallOptions, CriImageService, CriRuntimeService } from "../ports/cri.ts";
import { ImageService, RuntimeService } from "../ports/gen/runtime/v1/api_pb.js";
import { CallScope } from "./call-scope.ts";
import { Connection, type ConnectionChange } from "./connection.ts";
import { criErrorFrom, type Peer } from "./errors.ts";
import { isServerStreaming, isUnary } from "../ports/cri-methods.ts";

/** The largest message accepted and sent. Upstream accepts 16 MiB; a full node's container list can pass that. */
export const maxMessageBytes = 64 * 1024 * 1024;

/** The longest path that a Unix socket can have: `sun_path` without its final zero byte (unix(7)). */
const maxSocketPathBytes = 107;

export interface CriClientOptions {
  /** Where ImageService is served, when it is not where RuntimeService is (`imageServiceEndpoint`). */
  readonly imageEndpoint?: string;
  /** Called when the connection to the runtime opened and when it was lost. */
  readonly onConnectionChange?: (endpoint: string, change: ConnectionChange) => void;
}

/**
 * A client of a container runtime over gRPC. Nothing is opened before the first call; dispose of it to close the
 * connections. Calls while the runtime is away reject at once with `Unavailable`; the first one after it is back works.
 * `timeoutMs` of a call is sent as gRPC deadline and kept on this side as well. A stream's call starts with the first
 * `next()`; leaving its loop cancels it.
 * @param endpoint `unix:///path` or `/path`
 * @throws PodwrightError (bad input) for any other endpoint
 */
export function connectCri(endpoint: string, options: CriClientOptions = {}): Cri & Disposable {
  const path = socketPath(endpoint);
  const imagePath = socketPath(options.imageEndpoint ?? endpoint);
  const connect = (socket: string): Connection =>
    new Connection(socket, (change) => options.onConnectionChange?.(`unix://${socket}`, change));
  const runtimeConnection = connect(path);
  const imageConnection = imagePath === path ? runtimeConnection : connect(imagePath);
  return {
    runtime: bindService<CriRuntimeService>(RuntimeService, runtimeConnection),
    images: bindService<CriImageService>(ImageService, imageConnection),
    [Symbol.dispose]() {
      runtimeConnection[Symbol.dispose]();
      imageConnection[Symbol.dispose]();
    },
  };
}

/** The socket's path of a CRI endpoint. */
function socketPath(endpoint: string): string {
  const path = endpoint.startsWith("unix://") ? endpoint.slice("unix://".length) : endpoint;
  if (!path.startsWith("/")) {
    throw new PodwrightError(ExitCode.badInput, `cannot use "${endpoint}" as container runtime endpoint`, {
      remedy: "Name a Unix socket: unix:///run/containerd/containerd.sock",
    });
  }
  if (Buffer.byteLength(path) > maxSocketPathBytes || path.includes("\0")) {
    throw new PodwrightError(
      ExitCode.badInput,
      `the container runtime endpoint "${endpoint}" is no possible socket path`,
      {
        remedy: `Use an absolute path of at most ${maxSocketPathBytes} bytes.`,
      },
    );
  }
  return path;
}

/** One way to the runtime: what every call of a service needs. */
interface Channel {
  readonly transport: Transport;
  readonly peer: Peer;
}

/** A service's methods as functions, by their names in camel case. */
function bindService<Service>(service: DescService, connection: Connection): Service {
  const transport = createGrpcTransport({
    baseUrl: connection.authority,
    sessionManager: connection,
    readMaxBytes: maxMessageBytes,
    writeMaxBytes: maxMessageBytes,
    // Compressing for a socket of the same machine would only cost time.
    acceptCompression: [],
  });
  const channel: Channel = { transport, peer: connection };
  const calls: Record<string, unknown> = {};
  for (const method of service.methods) {
    if (isUnary(method)) {
      calls[method.localName] = (request: MessageInitShape<DescMessage>, options: CriCallOptions = {}) =>
        callUnary(channel, method, request, options);
    } else if (isServerStreaming(method)) {
      calls[method.localName] = (request: MessageInitShape<DescMessage>, options: CriCallOptions = {}) =>
        callStream(channel, method, request, options);
    }
  }
  // The mapped type is computed from this very descriptor; TypeScript can't follow the loop.
  return calls as Service;
}

async function callUnary<I extends DescMessage, O extends DescMessage>(
  { transport, peer }: Channel,
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  options: CriCallOptions,
): Promise<MessageShape<O>> {
  using scope = new CallScope(options);
  try {
    scope.signal.throwIfAborted();
    return (await transport.unary(method, scope.signal, undefined, scope.headers, request)).message;
  } catch (error) {
    throw criErrorFrom(error, method.name, scope, peer);
  }
}

function callStream<I extends DescMessage, O extends DescMessage>(
  channel: Channel,
  method: DescMethodServerStreaming<I, O>,
  request: MessageInitShape<I>,
  options: CriCallOptions,
): AsyncIterable<MessageShape<O>> {
  return { [Symbol.asyncIterator]: () => openStream(channel, method, request, options) };
}

function openStream<I extends DescMessage, O extends DescMessage>(
  { transport, peer }: Channel,
  method: DescMethodServerStreaming<I, O>,
  request: MessageInitShape<I>,
  options: CriCallOptions,
): AsyncIterator<MessageShape<O>, undefined> {
  let scope: CallScope | undefined;
  let messages: Promise<AsyncIterator<MessageShape<O>>> | undefined;
  let finished = false;
  const done = { done: true, value: undefined } as const;
  const open = async (
    signal: AbortSignal,
    headers: Record<string, string>,
  ): Promise<AsyncIterator<MessageShape<O>>> => {
    signal.throwIfAborted();
    const response = await transport.stream(method, signal, undefined, headers, once(request));
    return response.message[Symbol.asyncIterator]();
  };
  return {
    async next() {
      if (finished) return done;
      scope ??= new CallScope(options);
      try {
        messages ??= open(scope.signal, scope.headers);
        const result = await (await messages).next();
        if (result.done !== true) return result;
        finished = true;
        scope[Symbol.dispose]();
        return done;
      } catch (error) {
        scope[Symbol.dispose]();
        if (finished) return done;
        finished = true;
        throw criErrorFrom(error, method.name, scope, peer);
      }
    },
    async return() {
      finished = true;
      scope?.leave();
      return done;
    },
  };
}

async function* once<T>(value: T): AsyncIterable<T> {
  yield value;
}
