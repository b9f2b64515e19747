import { once } from "node:events";
import { createServer } from "node:net";

/** Below the kernel's ephemeral ports; each test process begins elsewhere. */
const first = 24_000;
const count = 8_000;
let next = (process.pid * 97) % count;

/** A free TCP port on loopback that no connection takes before it is used. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < count; tries++) {
    const port = first + next;
    next = (next + 1) % count;
    if (await isFree(port)) return port;
  }
  throw new Error("no TCP port");
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const listening = once(server, "listening").then(
    () => true,
    () => false,
  );
  server.listen(port, "0.0.0.0");
  if (!(await listening)) return false;
  server.close();
  await once(server, "close");
  return true;
}
