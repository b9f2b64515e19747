import type { AddressInfo, Server, Socket } from "node:net";

/**
 * Makes the server listen on a free local port.
 * @param opened collects clean-ups: closing the server and its connections
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
