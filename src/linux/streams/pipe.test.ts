import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { arriving, pipe, written } from "./pipe.ts";

/** Two ends of a loopback connection. */
async function pair(): Promise<readonly [Socket, Socket]> {
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const accepted = once(server, "connection");
  const near = connect({ host: "127.0.0.1", port: (server.address() as AddressInfo).port, allowHalfOpen: true });
  const [far] = (await accepted) as [Socket];
  if (near.connecting) await once(near, "connect");
  server.close();
  for (const socket of [near, far]) socket.on("error", () => {});
  return [near, far];
}

test("the last bytes of a peer that closes while being written to are not lost", async () => {
  for (let round = 0; round < 50; round++) {
    const [client, clientFar] = await pair();
    const [upstream, runtime] = await pair();
    const piped = pipe(clientFar, upstream);
    const flood = (async () => {
      while (client.writable && !client.destroyed) await written(client, Buffer.alloc(16_384));
    })();
    // It never reads: unread data resets its connection when it closes.
    setTimeout(() => runtime.write("last words", () => runtime.destroy()), 5);
    let text = "";
    for await (const chunk of arriving(client)) text += Buffer.from(chunk).toString();
    client.destroy();
    await Promise.all([flood, piped]);
    assert.equal(text, "last words", `round ${round}`);
  }
});

test("a slow side holds up the other, and gets all", async () => {
  const [client, clientFar] = await pair();
  const [upstream, runtime] = await pair();
  const piped = pipe(clientFar, upstream);
  client.end();
  const size = 32 * 1024 * 1024;
  let sent = 0;
  const sending = (async () => {
    for (; sent < size; sent += 65_536) await written(runtime, Buffer.alloc(65_536));
    runtime.end();
  })();
  client.pause();
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.ok(sent < size, "nothing is gathered for who does not read");
  let received = 0;
  for await (const chunk of arriving(client)) received += chunk.length;
  runtime.resume();
  await Promise.all([sending, piped]);
  assert.equal(received, size);
  for (const socket of [client, clientFar, upstream, runtime]) socket.destroy();
});
