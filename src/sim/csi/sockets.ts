import type { MemoryFiles } from "../files.ts";

/** What a server answers; rejects with an RpcError. A reply that never comes never settles. */
export type Serve = (method: string, request: Readonly<Record<string, unknown>>) => Promise<object>;

/** What listens at a socket of the simulated machine. */
export interface SocketServer {
  readonly serve: Serve;
  /** Called back when it ends: nothing is answered any more. */
  readonly onEnd: (cut: () => void) => Disposable;
}

/** The Unix sockets of the simulated machine: files, and who listens there. One that died leaves its file. */
export class SimSockets {
  readonly #files: MemoryFiles;
  readonly #servers = new Map<string, SocketServer>();

  constructor(files: MemoryFiles) {
    this.#files = files;
  }

  at(path: string): SocketServer | undefined {
    return this.#servers.get(path);
  }

  /** Takes the place of an earlier socket's file. */
  listen(path: string, server: SocketServer): void {
    this.#files.bind(path);
    this.#servers.set(path, server);
  }

  /** @param leavesFile as a killed process does */
  close(path: string, leavesFile: boolean): void {
    this.#servers.delete(path);
    if (!leavesFile) void this.#files.remove(path);
  }
}
