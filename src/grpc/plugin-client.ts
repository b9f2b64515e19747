import type { Clock } from "../ports/clock.ts";
import type { PluginClient } from "../ports/plugin-client.ts";
import { bindService } from "./client.ts";
import { Connection } from "./connection.ts";

/** Plugins by their sockets. */
export function pluginClient(clock: Clock): PluginClient {
  return {
    connect(service, path, name, onLost) {
      const connection = new Connection(clock, path, name, ({ state }) => {
        if (state === "lost") onLost?.();
      });
      const calls = bindService(service, connection, (error) => error);
      return Object.assign(calls, { [Symbol.dispose]: () => connection[Symbol.dispose]() });
    },
  };
}
