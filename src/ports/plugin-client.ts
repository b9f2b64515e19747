import type { DescService } from "@bufbuild/protobuf";
import type { RpcService } from "./rpc.ts";

/** Calls of plugins on this node, over their sockets. Every call rejects with an {@link RpcError} and nothing else. */
export interface PluginClient {
  /**
   * A service that a plugin serves on a Unix socket. It connects at the first call, and again after the plugin was
   * absent. Dispose of it to close the connection.
   * @param path absolute, of the socket
   * @param name the plugin, for messages: `CSI driver d.example.org`
   * @param onLost called when a connection is lost: another process may answer the next call
   */
  connect<S extends DescService>(
    service: S,
    path: string,
    name: string,
    onLost?: () => void,
  ): RpcService<S> & Disposable;
}
