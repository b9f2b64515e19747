import type { ClientHttp2Stream } from "node:http2";
import {
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import type { Cri, CriCallOptions, CriImageService, CriRuntimeService } from "../ports/cri.ts";
import { ImageService, RuntimeService } from "../ports/gen/runtime/v1/api_pb.js";
import { CallScope } from "./call-scope.ts";
import { Connection, type ConnectionChange } from "./connection.ts";
import { criErrorFrom } from "./errors.ts";
import { cancel, messagesOf, oneMessage } from "./grpc-call.ts";
import { frame } from "./grpc-frames.ts";
import { GrpcError } from "./grpc-status.ts";
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

/** A service's methods as functions, by their names in camel case. */
function bindService<Service>(service: DescService, connection: Connection): Service {
  const calls: Record<string, unknown> = {};
  for (const method of service.methods) {
    if (isUnary(method)) {
      calls[method.localName] = (request: MessageInitShape<DescMessage>, options: CriCallOptions = {}) =>
        callUnary(connection, method, request, options);
    } else if (isServerStreaming(method)) {
      calls[method.localName] = (request: MessageInitShape<DescMessage>, options: CriCallOptions = {}) =>
        callStream(connection, method, request, options);
    }
  }
  // The mapped type is computed from this very descriptor; TypeScript can't follow the loop.
  return calls as Service;
}

async function callUnary<I extends DescMessage, O extends DescMessage>(
  connection: Connection,
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  options: CriCallOptions,
): Promise<MessageShape<O>> {
  using scope = new CallScope(options);
  try {
    const stream = await send(connection, method, request, scope);
    const message = await scope.within(oneMessage(stream, maxMessageBytes), () => cancel(stream));
    return decode(method.output, message);
  } catch (error) {
    throw criErrorFrom(error, method.name, scope, connection);
  }
}

/** @throws GrpcError for what is no such message */
function decode<O extends DescMessage>(output: O, message: Uint8Array): MessageShape<O> {
  try {
    return fromBinary(output, message);
  } catch (error) {
    throw new GrpcError("Internal", `the answer can't be read: ${errorMessage(error)}`, { cause: error });
  }
}

/** The stream of a call whose request is sent. */
async function send<I extends DescMessage>(
  connection: Connection,
  method: DescMethod & { readonly input: I },
  request: MessageInitShape<I>,
  scope: CallScope,
): Promise<ClientHttp2Stream> {
  const message = frame(encode(method.input, request), maxMessageBytes);
  const opening = connection.request(`/${method.parent.typeName}/${method.name}`, scope.headers);
  const stream = await scope.within(opening, () => void opening.then(cancelUnanswered, () => {}));
  stream.end(message);
  return stream;
}

/** @throws GrpcError for values that the field's type has not */
function encode<I extends DescMessage>(input: I, request: MessageInitShape<I>): Uint8Array {
  try {
    return toBinary(input, create(input, request));
  } catch (error) {
    throw new GrpcError("Internal", `the request can't be written: ${errorMessage(error)}`, { cause: error });
  }
}

/** Of a call that ended before its stream was open. */
function cancelUnanswered(stream: ClientHttp2Stream): void {
  stream.on("error", () => {});
  cancel(stream);
}

function callStream<I extends DescMessage, O extends DescMessage>(
  connection: Connection,
  method: DescMethodServerStreaming<I, O>,
  request: MessageInitShape<I>,
  options: CriCallOptions,
): AsyncIterable<MessageShape<O>> {
  return { [Symbol.asyncIterator]: () => openStream(connection, method, request, options) };
}

function openStream<I extends DescMessage, O extends DescMessage>(
  connection: Connection,
  method: DescMethodServerStreaming<I, O>,
  request: MessageInitShape<I>,
  options: CriCallOptions,
): AsyncIterator<MessageShape<O>, undefined> {
  let scope: CallScope | undefined;
  let opened: Promise<OpenStream> | undefined;
  let finished = false;
  const done = { done: true, value: undefined } as const;
  return {
    async next() {
      if (finished) return done;
      scope ??= new CallScope(options);
      try {
        opened ??= open(send(connection, method, request, scope));
        const { messages, stream } = await opened;
        const result = await scope.within(messages.next(), () => cancel(stream));
        if (result.done !== true) return { done: false, value: decode(method.output, result.value) };
        finished = true;
        scope[Symbol.dispose]();
        return done;
      } catch (error) {
        scope[Symbol.dispose]();
        if (finished) return done;
        finished = true;
        throw criErrorFrom(error, method.name, scope, connection);
      }
    },
    async return() {
      finished = true;
      scope?.leave();
      return done;
    },
  };
}

interface OpenStream {
  readonly stream: ClientHttp2Stream;
  readonly messages: AsyncGenerator<Uint8Array, undefined>;
}

async function open(sending: Promise<ClientHttp2Stream>): Promise<OpenStream> {
  const stream = await sending;
  return { stream, messages: messagesOf(stream, maxMessageBytes) };
}
