import type { PluginClient } from "../ports/plugin-client.ts";

/** Longer paths of sockets are rejected by Linux. */
const longestPath = 107;

/**
 * Connects to drivers through the own root directory: the sockets in its `plugins` are the same as those where drivers find
 * it, until another kubelet gets that place. From then on a driver of that kubelet, of the same name, would answer there.
 * @param told where drivers find the root directory
 */
export function throughOwnDirectory(plugins: PluginClient, told: string, rootDirectory: string): PluginClient {
  return {
    connect(service, path, name, onLost) {
      const own = path.startsWith(`${told}/plugins/`) ? `${rootDirectory}${path.slice(told.length)}` : path;
      return plugins.connect(service, Buffer.byteLength(own) > longestPath ? path : own, name, onLost);
    },
  };
}
