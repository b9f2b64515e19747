import type { DescService } from "@bufbuild/protobuf";
import type { RpcService } from "./rpc.ts";

/** Calls of plugins on this node, over their sockets. Every call rejects with an {@link RpcError} and nothing else. */
export interface PluginClient {
  /**
   * A service that a plugin serves on a Unix socket. Nothing is opened before the first call; a plugin that has gone away is
   * reached again once it is back. Dispose of it to close the connection.
   * @param path absolute, of the socket
   * @param name what is there, for messages: `CSI driver d.example.org`
   */
  connect<S extends DescService>(service: S, path: string, name: string): RpcService<S> & Disposable;
}
