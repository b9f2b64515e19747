import type { IncomingMessage } from "node:http";
import { eitherSignal } from "../../base/abort.ts";
import { PodwrightError } from "../../base/errors.ts";
import type { ApiHandler, ApiRequest, ApiResponse } from "../../ports/api-server.ts";
import type { NodeHandler, NodeRequest } from "../../ports/node-server.ts";
import { errorResponse } from "../http/api-errors.ts";
import { type ExchangeOptions, type Incoming, splitTarget } from "../http/http-exchange.ts";
import { answerRaw, forwardUpgrade, type UpgradeConnection } from "./http-upgrade.ts";
import { withProtocolToken } from "./websocket-token.ts";

export interface UpgradeOptions extends Pick<ExchangeOptions, "onError" | "errorAnswer"> {
  /** A streaming connection that is idle for this long is closed, in milliseconds. */
  readonly streamingIdleMs: number;
}

const upgradeRequired: ApiResponse = {
  status: 400,
  contentType: "text/plain; charset=utf-8",
  headers: { "X-Content-Type-Options": "nosniff" },
  body: "unable to upgrade: this needs a connection that asks for SPDY/3.1 or WebSocket\n",
};

/** Responds to a request without a supported protocol. */
export function withoutUpgrade(handler: NodeHandler, incoming: Incoming): ApiHandler {
  return async (base) => {
    const result = await handler(nodeRequest(base, incoming, false));
    return "forwardTo" in result ? upgradeRequired : result;
  };
}

/** Responds to a request with one: with another server's streams, or with the handler's response, which ends with its client. Never rejects. */
export async function changeProtocol(
  connection: UpgradeConnection,
  handler: NodeHandler,
  options: UpgradeOptions,
  signal: AbortSignal,
): Promise<void> {
  const { incoming, client } = connection;
  incoming.headers = withProtocolToken(incoming.headers);
  client.on("error", () => {});
  // Each direction of a pipe adds two listeners for the end.
  client.setMaxListeners(30);
  // From here on a client may have sent all of its input and still wait for output.
  client.allowHalfOpen = true;
  const gone = new AbortController();
  const leave = (): void => gone.abort(new Error("the client disconnected"));
  client.once("close", leave);
  using either = eitherSignal(gone.signal, signal);
  try {
    const result = await handler(nodeRequest(upgradeBase(incoming, either.signal), incoming, true));
    if ("forwardTo" in result) return await forwardUpgrade(connection, result, options.streamingIdleMs, signal);
    // That it is gone shows only while it is read: a log without new lines would be followed forever.
    client.once("end", leave).resume();
    await answerRaw(client, result);
  } catch (error) {
    if (gone.signal.aborted) return;
    if (!(error instanceof PodwrightError)) {
      options.onError?.(error, { method: incoming.method ?? "GET", path: incoming.url ?? "/" });
    }
    await answerRaw(client, (options.errorAnswer ?? errorResponse)(error));
  }
}

function upgradeBase(incoming: IncomingMessage, signal: AbortSignal): ApiRequest {
  return {
    method: incoming.method ?? "GET",
    ...splitTarget(incoming.url),
    body: async () => "",
    signal,
  };
}

function nodeRequest(base: ApiRequest, incoming: Incoming, upgrade: boolean): NodeRequest {
  const headers: Record<string, string | undefined> = {};
  for (const [name, value] of Object.entries(incoming.headers)) {
    headers[name] = typeof value === "string" ? value : value?.join(", ");
  }
  return { ...base, headers, certificate: undefined, upgrade };
}
