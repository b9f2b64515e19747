import type { AddressInfo, Server, Socket } from "node:net";

/**
 * Lets the server listen on a port of its own of this machine.
 * @param opened what is to be called in the end: closes the server and its connections
 * @returns the port
 */
export async function listening(server: Server, opened: (() => void)[]): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => sockets.add(socket));
  opened.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done));
  return (server.address() as AddressInfo).port;
}
