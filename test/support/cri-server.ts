import * as http2 from "node:http2";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ServiceImpl } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { ImageService, RuntimeService } from "../../src/ports/gen/runtime/v1/api_pb.js";
import { type RuntimeWays, usualWays } from "../../src/sim/runtime-ways.ts";

export interface CriServerHandlers {
  readonly runtime?: Partial<ServiceImpl<typeof RuntimeService>>;
  readonly images?: Partial<ServiceImpl<typeof ImageService>>;
}

/** The runtime differences that are visible on the wire. */
type WireWays = Pick<RuntimeWays, "hangsUpOnOtherTypes">;

/** A gRPC server on a Unix socket with responses written by the test; methods without one return Unimplemented. */
export class CriServer implements AsyncDisposable {
  readonly path: string;
  readonly #directory: string;
  readonly #handlers: CriServerHandlers;
  readonly #ways: WireWays;
  readonly #sessions = new Set<http2.ServerHttp2Session>();
  #server: http2.Http2Server | undefined;
  /** Connections accepted so far. */
  connections = 0;
  /** The headers of every request so far. */
  readonly requests: http2.IncomingHttpHeaders[] = [];

  constructor(handlers: CriServerHandlers, ways: WireWays = usualWays) {
    this.#handlers = handlers;
    this.#ways = ways;
    this.#directory = mkdtempSync(join(tmpdir(), "podwright-cri-"));
    this.path = join(this.#directory, "cri.sock");
  }

  get endpoint(): string {
    return `unix://${this.path}`;
  }

  async start(): Promise<this> {
    const adapter = connectNodeAdapter({
      routes: (router) => {
        router.service(RuntimeService, this.#handlers.runtime ?? {});
        router.service(ImageService, this.#handlers.images ?? {});
      },
      readMaxBytes: 0xffff_ffff,
      writeMaxBytes: 0xffff_ffff,
    });
    // Node's own limits would reject the test's data before the client sees it.
    const options = { maxSessionMemory: 1000, maxSendHeaderBlockLength: 4 * 1024 * 1024 };
    const server = http2.createServer(options, (request, response) => {
      this.requests.push(request.headers);
      if (this.#hangsUpOn(request)) request.stream.session?.destroy();
      else adapter(request, response);
    });
    server.on("session", (session) => {
      this.connections++;
      this.#sessions.add(session);
      session.on("error", () => {});
      session.once("close", () => this.#sessions.delete(session));
    });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(this.path, resolve);
    });
    this.#server = server;
    return this;
  }

  /** Ends like a killed process: sockets close without GOAWAY. */
  async kill(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    // The sockets first: closing the server sends GOAWAY on remaining ones.
    for (const session of this.#sessions) session.destroy();
    await new Promise((resolve) => server.close(resolve));
  }

  /** Like a multiplexer that does not recognise the protocol from the first headers. */
  #hangsUpOn({ headers }: http2.Http2ServerRequest): boolean {
    return this.#ways.hangsUpOnOtherTypes && headers["content-type"] !== "application/grpc";
  }

  /** Sends GOAWAY, as a server that shuts down after its last streams. */
  sayGoodbye(): void {
    for (const session of this.#sessions) session.goaway();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** Starts a server with these responses on its own socket. */
export function startCriServer(handlers: CriServerHandlers, ways?: WireWays): Promise<CriServer> {
  return new CriServer(handlers, ways).start();
}
