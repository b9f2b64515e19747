import { once } from "node:events";
import type { Duplex } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { systemClock } from "../processes/clock.ts";

/** Maximum bytes buffered for a slow side. */
const heldBytes = 256 * 1024;

/**
 * The bytes of a connection, to its end or reset. A peer that closes with unread data resets the connection, and a
 * reset discards what has not been read here. So data is read as it arrives, not when it is requested.
 */
export async function* arriving(connection: Duplex): AsyncGenerator<Uint8Array> {
  let [held, isOver, wake] = [0, connection.destroyed, Promise.withResolvers<void>()];
  const chunks: Uint8Array[] = [];
  const take = (chunk: Uint8Array): void => {
    chunks.push(chunk);
    held += chunk.length;
    if (held > heldBytes) connection.pause();
    wake.resolve();
  };
  const end = (): void => {
    isOver = true;
    wake.resolve();
  };
  connection.on("data", take).once("end", end).once("close", end).on("error", end).resume();
  try {
    for (;;) {
      const chunk = chunks.shift();
      if (chunk === undefined && isOver) return;
      if (chunk === undefined) {
        await wake.promise;
        wake = Promise.withResolvers<void>();
        continue;
      }
      held -= chunk.length;
      yield chunk;
      if (held <= heldBytes && connection.isPaused()) connection.resume();
    }
  } finally {
    connection.off("data", take).off("end", end).off("close", end);
  }
}

/**
 * Resolves when more can be written, or the connection is over. Incoming data is read first: writing to a closed peer
 * is an error after which nothing can be read.
 */
export async function written(connection: Duplex, bytes: Uint8Array): Promise<void> {
  await setImmediate();
  if (!connection.writable || connection.write(bytes)) return;
  const enough = new AbortController();
  const events = ["drain", "close"].map((event) => once(connection, event, { signal: enough.signal }));
  await Promise.race(events).catch(() => {});
  enough.abort();
  await Promise.allSettled(events);
}

/** How long a client may take to read the last bytes and leave. */
const leaveMs = 5000;

/**
 * Passes bytes both ways. Each direction ends on its own: a client that has sent everything still waits for output.
 * Once the upstream has ended, the client's input is discarded until it leaves, because closing while it sends would
 * reset the connection and lose the last bytes.
 */
export async function pipe(client: Duplex, upstream: Duplex): Promise<void> {
  client.once("close", () => upstream.destroy());
  const up = pass(client, upstream);
  await pass(upstream, client);
  using _leave = systemClock.timer("a client to disconnect", leaveMs, () => client.destroy());
  await up;
}

async function pass(from: Duplex, to: Duplex): Promise<void> {
  for await (const chunk of arriving(from)) await written(to, chunk);
  if (!to.writable) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  to.once("close", resolve);
  to.end(resolve);
  await promise;
}
