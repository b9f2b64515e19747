import { once } from "node:events";
import type { Duplex } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { systemClock } from "../processes/clock.ts";

/** So much of what has come is held for a side that is slow. */
const heldBytes = 256 * 1024;

/**
 * What comes on a connection, to its end or its break. A peer that has said its last word and closes while more is on the
 * way to it breaks the connection; what it said before must not be lost with it, so that is taken as it arrives, and
 * not when somebody asks for it: a broken connection forgets what nobody has taken.
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
 * Resolves when the connection takes more, or is over. What has come from the other side is read before: writing to one
 * that has closed meanwhile is an error after which nothing can be read any more.
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

/** How long a client may take to read the last words and go. */
const leaveMs = 5000;

/**
 * Passes bytes both ways. Each way ends by itself: a client that has sent all still waits for what is answered. Once the
 * other side has said all, what the client still sends is thrown away until it goes: closed while it sends, its
 * connection would break, and the last words with it.
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
