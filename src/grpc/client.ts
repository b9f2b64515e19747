import {
  create,
  type DescMessage,
  type DescMethod,
  type DescService,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { errorMessage } from "../base/errors.ts";
import { type RpcCallOptions, RpcError, type RpcService } from "../ports/rpc.ts";
import { isServerStreaming, isUnary } from "../ports/rpc-methods.ts";
import { callError } from "./call-error.ts";
import { CallScope } from "./call-scope.ts";
import { Messages, OneMessage } from "./call.ts";
import { callHeaders } from "./call-headers.ts";
import type { Connection } from "./connection.ts";
import { frame } from "./frames.ts";

/** The largest message accepted and sent. Upstream accepts 16 MiB; a full node's container list can pass that. */
const maxMessageBytes = 64 * 1024 * 1024;

/** Maps a call's error to the error of the method's caller. */
export type WrapError = (error: RpcError, method: string) => Error;

/**
 * A service's methods as functions over a connection. `timeoutMs` of a call is sent as gRPC deadline and enforced on
 * this side as well. A stream's call starts with the first `next()`; leaving its loop cancels it.
 */
export function bindService<S extends DescService>(service: S, connection: Connection, wrap: WrapError): RpcService<S> {
  const calls: Record<string, unknown> = {};
  for (const method of service.methods) {
    const caller = new MethodCaller(connection, method, wrap);
    if (isUnary(method)) calls[method.localName] = caller.unary.bind(caller);
    else if (isServerStreaming(method)) calls[method.localName] = caller.stream.bind(caller);
  }
  // The mapped type is computed from this very descriptor; TypeScript can't follow the loop.
  return calls as RpcService<S>;
}

class MethodCaller {
  readonly #connection: Connection;
  readonly #method: DescMethod;
  readonly #wrap: WrapError;

  constructor(connection: Connection, method: DescMethod, wrap: WrapError) {
    this.#connection = connection;
    this.#method = method;
    this.#wrap = wrap;
  }

  async unary(
    request: MessageInitShape<DescMessage>,
    options: RpcCallOptions = {},
  ): Promise<MessageShape<DescMessage>> {
    using scope = new CallScope(this.#connection.clock, this.#method.name, options);
    try {
      const answer = new OneMessage(maxMessageBytes);
      await this.#send(request, scope, answer);
      scope.whenEnded((error) => answer.giveUp(error));
      return decode(this.#method.output, await answer.message);
    } catch (error) {
      throw this.#errorOf(error, scope);
    }
  }

  stream(
    request: MessageInitShape<DescMessage>,
    options: RpcCallOptions = {},
  ): AsyncIterable<MessageShape<DescMessage>> {
    return { [Symbol.asyncIterator]: () => this.#iterate(request, options) };
  }

  #iterate(
    request: MessageInitShape<DescMessage>,
    options: RpcCallOptions,
  ): AsyncIterator<MessageShape<DescMessage>, undefined> {
    let scope: CallScope | undefined;
    let opened: Promise<Messages> | undefined;
    let finished = false;
    const done = { done: true, value: undefined } as const;
    return {
      next: async () => {
        if (finished) return done;
        scope ??= new CallScope(this.#connection.clock, this.#method.name, options);
        try {
          opened ??= this.#open(request, scope);
          const messages = await opened;
          const message = await scope.within(messages.next(), () => messages.stream?.cancel());
          if (message !== undefined) return { done: false, value: this.#read(messages, message) };
          finished = true;
          scope[Symbol.dispose]();
          return done;
        } catch (error) {
          scope[Symbol.dispose]();
          if (finished) return done;
          finished = true;
          throw this.#errorOf(error, scope);
        }
      },
      return: async () => {
        finished = true;
        scope?.leave();
        return done;
      },
    };
  }

  async #open(request: MessageInitShape<DescMessage>, scope: CallScope): Promise<Messages> {
    const messages = new Messages(maxMessageBytes);
    await this.#send(request, scope, messages);
    return messages;
  }

  /** @throws RpcError for an undecodable message; the stream then ends */
  #read(messages: Messages, message: Uint8Array): MessageShape<DescMessage> {
    try {
      return decode(this.#method.output, message);
    } catch (error) {
      messages.stream?.cancel();
      throw error;
    }
  }

  /** Sends the request; the answer then receives the response. */
  async #send(request: MessageInitShape<DescMessage>, scope: CallScope, answer: OneMessage | Messages): Promise<void> {
    const { input, parent, name } = this.#method;
    const message = frame(encode(input, request), maxMessageBytes);
    scope.throwIfEnded();
    const session = this.#connection.session ?? (await scope.within(this.#connection.open()));
    const headers = callHeaders(`/${parent.typeName}/${name}`, scope.timeout);
    answer.stream = session.request(headers, message, answer, answer instanceof Messages);
  }

  #errorOf(error: unknown, scope: CallScope): Error {
    return this.#wrap(callError(error, scope, this.#connection), this.#method.name);
  }
}

/** @throws RpcError for values that do not fit the field's type */
function encode(input: DescMessage, request: MessageInitShape<DescMessage>): Uint8Array {
  try {
    return toBinary(input, create(input, request));
  } catch (error) {
    throw new RpcError("Internal", `cannot encode the request: ${errorMessage(error)}`, { cause: error });
  }
}

/** @throws RpcError for an undecodable message */
function decode(output: DescMessage, message: Uint8Array): MessageShape<DescMessage> {
  try {
    return fromBinary(output, message);
  } catch (error) {
    throw new RpcError("Internal", `cannot decode the response: ${errorMessage(error)}`, { cause: error });
  }
}
