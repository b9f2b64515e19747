import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { test } from "node:test";
import { ConnectionGuard, type ConnectionLimits } from "./connection-guard.ts";

interface Guarded extends AsyncDisposable {
  readonly guard: ConnectionGuard;
  /** A client's socket, once the server has accepted it. */
  open(): Promise<Socket>;
}

async function start(limits: ConnectionLimits): Promise<Guarded> {
  const server: Server = createServer((socket) => socket.resume());
  const guard = new ConnectionGuard(server, limits);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const clients: Socket[] = [];
  return {
    guard,
    open: async () => {
      const accepted = once(server, "connection");
      const client = connect(port, "127.0.0.1");
      client.on("error", () => {}).resume();
      clients.push(client);
      await accepted;
      return client;
    },
    [Symbol.asyncDispose]: async () => {
      for (const client of clients) client.destroy();
      guard[Symbol.dispose]();
      server.close();
      await once(server, "close");
    },
  };
}

/** The client as the server sees it. */
function peer(client: Socket): { readonly remoteAddress: string; readonly remotePort: number } {
  return { remoteAddress: client.localAddress ?? "", remotePort: client.localPort ?? 0 };
}

async function isClosed(client: Socket): Promise<boolean> {
  if (!client.closed) await Promise.race([once(client, "close"), new Promise((done) => setTimeout(done, 500))]);
  return client.closed;
}

test("the longest idle connection makes room for a new one, and active ones stay", async () => {
  await using server = await start({ connections: 3, pendingBytes: 1e9 });
  const [answered, idle, recent] = [await server.open(), await server.open(), await server.open()];
  const first = server.guard.begin(peer(answered));
  server.guard.begin(peer(idle))[Symbol.dispose]();
  const fourth = await server.open();
  assert.equal(await isClosed(recent), true);
  assert.deepEqual([answered.closed, idle.closed, fourth.closed], [false, false, false]);
  for (const client of [idle, fourth]) server.guard.begin(peer(client));
  const fifth = await server.open();
  assert.equal(await isClosed(fifth), true);
  first[Symbol.dispose]();
  const sixth = await server.open();
  assert.equal(await isClosed(answered), true);
  assert.equal(sixth.closed, false);
});

test("the client that has sent most without completing a request is closed first", async () => {
  await using server = await start({ connections: 100, pendingBytes: 200_000 });
  const clients: Socket[] = [];
  for (let index = 0; index < 20; index++) clients.push(await server.open());
  const [streaming, greedy, modest] = clients;
  assert.ok(streaming && greedy && modest);
  server.guard.begin(peer(streaming));
  streaming.write(Buffer.alloc(400_000));
  greedy.write(Buffer.alloc(300_000));
  modest.write(Buffer.alloc(1000));
  assert.equal(await isClosed(greedy), true);
  await new Promise((done) => setTimeout(done, 250));
  assert.equal(clients.filter((client) => client.closed).length, 1);
});
