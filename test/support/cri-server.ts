import * as http2 from "node:http2";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ServiceImpl } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { ImageService, RuntimeService } from "../../src/ports/gen/runtime/v1/api_pb.js";

export interface CriServerHandlers {
  readonly runtime?: Partial<ServiceImpl<typeof RuntimeService>>;
  readonly images?: Partial<ServiceImpl<typeof ImageService>>;
}

/** A gRPC server on a Unix socket whose answers a test writes itself; methods without one answer Unimplemented. */
export class CriServer implements AsyncDisposable {
  readonly path: string;
  readonly #directory: string;
  readonly #handlers: CriServerHandlers;
  readonly #sessions = new Set<http2.ServerHttp2Session>();
  #server: http2.Http2Server | undefined;
  /** Connections accepted so far. */
  connections = 0;

  constructor(handlers: CriServerHandlers) {
    this.#handlers = handlers;
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
    // Node's own limits would end what a test sends before the client sees it.
    const server = http2.createServer({ maxSessionMemory: 1000, maxSendHeaderBlockLength: 4 * 1024 * 1024 }, adapter);
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

  /** Ends as a killed process does: sockets close without a word. */
  async kill(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    // The sockets first: closing the server says GOAWAY on those that are left.
    for (const session of this.#sessions) session.destroy();
    await new Promise((resolve) => server.close(resolve));
  }

  /** Sends GOAWAY, as a server does that shuts down after its last streams. */
  sayGoodbye(): void {
    for (const session of this.#sessions) session.goaway();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

/** Starts a server with these answers on a socket of its own. */
export function startCriServer(handlers: CriServerHandlers): Promise<CriServer> {
  return new CriServer(handlers).start();
}
