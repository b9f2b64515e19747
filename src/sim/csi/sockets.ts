import type { MemoryFiles } from "../files.ts";

/**
 * The server's response; rejects with an RpcError. A missing response never settles.
 * @param caller the run of podwright that calls
 */
export type Serve = (
  method: string,
  request: Readonly<Record<string, unknown>>,
  caller: object,
  call: ArrivedCall,
) => Promise<object>;

/** A call, as its caller sees it. */
export interface ArrivedCall {
  /** It was answered or given up. */
  readonly isOver: boolean;
}

/** A listener on a socket of the simulated machine. */
export interface SocketServer {
  readonly serve: Serve;
  /** Registers a callback for its end; there are no responses afterwards. */
  readonly onEnd: (cut: () => void) => Disposable;
}

/** The Unix sockets of the simulated machine: files with listeners. A killed listener leaves its file. */
export class SimSockets {
  readonly #files: MemoryFiles;
  readonly #servers = new Map<string, SocketServer>();

  constructor(files: MemoryFiles) {
    this.#files = files;
  }

  at(path: string): SocketServer | undefined {
    return this.#servers.get(path);
  }

  /** Replaces an existing socket file. */
  listen(path: string, server: SocketServer): void {
    this.#files.bind(path);
    this.#servers.set(path, server);
  }

  /** @param leavesFile as after a kill */
  close(path: string, leavesFile: boolean): void {
    this.#servers.delete(path);
    if (!leavesFile) void this.#files.remove(path);
  }
}
