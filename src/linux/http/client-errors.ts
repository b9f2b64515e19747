import type { EventEmitter } from "node:events";
import { type IncomingMessage, ServerResponse, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { systemClock } from "../processes/clock.ts";
import type { Outgoing } from "./http-exchange.ts";

/** HTTP statuses by the codes of Node.js's parser and its time limits. */
const statuses: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

/** As Go: closing a connection while its client still sends would reset it and lose the response. */
const readingMs = 500;

/**
 * Responds to invalid or unfinished requests in the words of Go's HTTP server: the status as plain text. Only where no
 * response has begun on the connection, because the text would become a part of it.
 */
export function answerClientErrors(server: EventEmitter): void {
  const unfinished = new WeakMap<Duplex, Set<ServerResponse>>();
  server.on("request", ({ socket }: IncomingMessage, outgoing: Outgoing) => {
    if (!(outgoing instanceof ServerResponse)) return;
    const own = unfinished.get(socket) ?? new Set();
    unfinished.set(socket, own.add(outgoing));
    outgoing.once("close", () => own.delete(outgoing));
  });
  const refused = new WeakSet<Duplex>();
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Duplex) => {
    // One response is enough for a connection.
    if (refused.has(socket)) return;
    const isGone = error.code === "ECONNRESET" || !socket.writable;
    if (isGone || [...(unfinished.get(socket) ?? [])].some(({ headersSent }) => headersSent)) {
      socket.destroy(error);
      return;
    }
    const status = statuses[error.code ?? ""] ?? 400;
    const text = `${status} ${STATUS_CODES[status]}`;
    const headers = "Content-Type: text/plain; charset=utf-8\r\nConnection: close";
    refused.add(socket);
    socket.end(`HTTP/1.1 ${text}\r\n${headers}\r\n\r\n${text}`);
    const end = systemClock.timer("a rejected client to read its response", readingMs, () => socket.destroy());
    socket.once("close", () => end[Symbol.dispose]());
  });
}
