import * as http2 from "node:http2";
import type { AddressInfo } from "node:net";

/** A gRPC server on every address of this machine that answers grpc.health.v1.Health/Check and nothing else. For tests. */
export interface HealthServer extends AsyncDisposable {
  readonly port: number;
  serving: boolean;
}

export async function startHealthServer(): Promise<HealthServer> {
  const server = http2.createServer();
  const sessions = new Set<http2.ServerHttp2Session>();
  server.on("session", (session) => {
    sessions.add(session);
    session.on("error", () => {});
    session.once("close", () => sessions.delete(session));
  });
  const health: HealthServer = {
    serving: true,
    get port() {
      return (server.address() as AddressInfo).port;
    },
    [Symbol.asyncDispose]: async () => {
      for (const session of sessions) session.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  server.on("stream", (stream: http2.ServerHttp2Stream) => {
    stream.on("error", () => {});
    stream.respond({ "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.end(Uint8Array.of(0, 0, 0, 0, 2, 0x08, health.serving ? 1 : 2));
  });
  await new Promise<void>((resolve) => server.listen(0, resolve));
  return health;
}
