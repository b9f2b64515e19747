import { once } from "node:events";
import { createServer, type Http2ServerRequest, type Http2ServerResponse, type ServerHttp2Session } from "node:http2";
import type { Server } from "node:net";
import { Code, ConnectError, type ConnectRouter, type Interceptor } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { TokenBucket } from "../base/token-bucket.ts";
import type { Clock } from "../ports/clock.ts";
import { RpcError } from "../ports/rpc.ts";

export interface GrpcServerOptions {
  readonly clock: Clock;
  /** For unary calls of all clients together; calls above the limit are rejected. */
  readonly limit: { readonly perSecond: number; readonly burst: number };
}

type Handler = (request: Http2ServerRequest, response: Http2ServerResponse) => void;

/** Requests are a few bytes. */
const maxRequestBytes = 64 * 1024;
const maxStreams = 64;
const closeGraceMs = 500;

/**
 * Serves gRPC on the socket that `listen` opens.
 * @param listen resolves once the server listens, to the removal of its socket
 */
export async function serveGrpc(
  routes: (router: ConnectRouter) => void,
  { clock, limit }: GrpcServerOptions,
  listen: (server: Server) => Promise<() => Promise<void>>,
): Promise<AsyncDisposable> {
  const adapter = connectNodeAdapter({
    routes,
    grpc: true,
    grpcWeb: false,
    connect: false,
    readMaxBytes: maxRequestBytes,
    interceptors: [limited(clock, new TokenBucket(limit.perSecond, limit.burst)), withCodes],
  });
  const sessions = new Set<ServerHttp2Session>();
  const server = createServer({ settings: { maxConcurrentStreams: maxStreams } }, withoutAuthority(adapter));
  server.on("session", (session) => {
    sessions.add(session);
    // Broken connections are a matter of the clients.
    session.on("error", () => {});
    session.once("close", () => sessions.delete(session));
  });
  server.on("sessionError", () => {});
  const remove = await listen(server);
  return {
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, "close");
      server.close();
      for (const session of sessions) session.close();
      using _grace = clock.timer("gRPC calls to end", closeGraceMs, () => {
        for (const session of sessions) session.destroy();
      });
      await closed;
      await remove();
    },
  };
}

/**
 * The adapter makes a URL of a request's authority. Go's clients name the path of the socket, percent-encoded, which is
 * none: the error, thrown in a listener, would end the process.
 */
function withoutAuthority(handle: Handler): Handler {
  return (request, response) => {
    request.headers[":authority"] = "localhost";
    handle(request, response);
  };
}

function limited(clock: Clock, bucket: TokenBucket): Interceptor {
  return (next) => async (request) => {
    if (request.stream || bucket.tryTake(clock.monotonic())) return await next(request);
    throw new ConnectError("rejected by rate limit", Code.ResourceExhausted);
  };
}

/** Gives errors their status codes, also in a stream that has begun. */
const withCodes: Interceptor = (next) => async (request) => {
  try {
    const response = await next(request);
    return response.stream ? { ...response, message: codedStream(response.message) } : response;
  } catch (error) {
    throw coded(error);
  }
};

async function* codedStream<T>(messages: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* messages;
  } catch (error) {
    throw coded(error);
  }
}

function coded(error: unknown): unknown {
  return error instanceof RpcError ? new ConnectError(error.message, Code[error.code]) : error;
}
