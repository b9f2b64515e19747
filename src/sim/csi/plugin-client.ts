import { create, type DescService } from "@bufbuild/protobuf";
import type { Clock } from "../../ports/clock.ts";
import type { PluginClient } from "../../ports/plugin-client.ts";
import { type RpcCallOptions, RpcError, type RpcService } from "../../ports/rpc.ts";
import type { Gate } from "../gate.ts";
import type { SimSockets, SocketServer } from "./sockets.ts";

/** Time until a socket without a listener refuses a call. */
const refusedAfterMs = 1;

export interface SimPluginClientParts {
  readonly clock: Clock;
  readonly gate: Pick<Gate, "step" | "alive">;
  readonly sockets: SimSockets;
}

/** One run's calls to plugins on its machine. A call that has arrived is carried out even after the run has ended. */
export function simPluginClient(parts: SimPluginClientParts): PluginClient {
  return {
    connect<S extends DescService>(service: S, path: string, name: string, onLost?: () => void) {
      const closed = new AbortController();
      const lost = lossOf(closed.signal, onLost);
      const methods = service.methods.map((method) => {
        const call = async (request: object, options: RpcCallOptions = {}): Promise<object> => {
          lost(parts.sockets.at(path));
          const connection = { ...parts, path, name, closed: closed.signal };
          return create(method.output, { ...(await callOf(connection, method.localName, request, options)) });
        };
        return [method.localName, call] as const;
      });
      const calls = Object.fromEntries(methods) as unknown as RpcService<S>;
      return Object.assign(calls, { [Symbol.dispose]: () => closed.abort() });
    },
  };
}

/** Registers, at the first call of each server, what is called when that server has ended. */
function lossOf(closed: AbortSignal, onLost: (() => void) | undefined): (server: SocketServer | undefined) => void {
  let known: SocketServer | undefined;
  return (server) => {
    if (server === undefined || server === known || onLost === undefined) return;
    known = server;
    server.onEnd(() => {
      if (!closed.aborted) onLost();
    });
  };
}

interface Connection extends SimPluginClientParts {
  readonly path: string;
  readonly name: string;
  readonly closed: AbortSignal;
}

async function callOf(
  { clock, gate, sockets, path, name, closed }: Connection,
  method: string,
  request: object,
  { signal, timeoutMs }: RpcCallOptions,
): Promise<object> {
  if (!gate.step()) return await never();
  const ended = Promise.withResolvers<never>();
  ended.promise.catch(() => {});
  const cancel = (): void => ended.reject(new RpcError("Canceled", `${name}: ${method} was canceled`));
  if (closed.aborted || signal?.aborted === true) cancel();
  closed.addEventListener("abort", cancel);
  signal?.addEventListener("abort", cancel);
  const timesOut = (): void => ended.reject(new RpcError("DeadlineExceeded", `${name} does not answer ${method}`));
  using _limit = timeoutMs === undefined ? undefined : clock.timer(`${name} to answer`, timeoutMs, timesOut);
  const server = sockets.at(path);
  const call = { isOver: false };
  using _end = server?.onEnd(() => ended.reject(new RpcError("Unavailable", `${name} has ended`)));
  try {
    const answer = server === undefined ? refused(clock, path) : server.serve(method, { ...request }, gate, call);
    answer.catch(() => {});
    return await Promise.race([answer, ended.promise]);
  } finally {
    call.isOver = true;
    closed.removeEventListener("abort", cancel);
    signal?.removeEventListener("abort", cancel);
    // An ended process receives nothing.
    if (!gate.step()) await never();
  }
}

async function refused(clock: Clock, path: string): Promise<never> {
  await clock.sleep("a socket without a server", refusedAfterMs);
  throw new RpcError("Unavailable", `connect ECONNREFUSED ${path}`);
}

/** The wait of an ended process. */
function never(): Promise<never> {
  return new Promise(() => {});
}
