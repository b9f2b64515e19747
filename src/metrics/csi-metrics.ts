import { storageBounds } from "./buckets.ts";
import type { Registry } from "./registry.ts";

/** The state of a plugin's socket, as upstream counts them. */
export interface PluginSocketState {
  readonly path: string;
  readonly isRegistered: boolean;
}

/** Calls of CSI drivers, and the sockets by which plugins register. */
export class CsiMetrics {
  readonly #calls;
  readonly #plugins;

  constructor(registry: Registry) {
    this.#calls = registry.histogram(
      "csi_operations_seconds",
      "Container Storage Interface operation duration with gRPC error code status total",
      ["driver_name", "method_name", "grpc_status_code", "migrated"],
      storageBounds,
    );
    this.#plugins = registry.gauge("plugin_manager_total_plugins", "Number of plugins in Plugin Manager", [
      "socket_path",
      "state",
    ]);
  }

  called(driver: string, method: string, code: string, durationMs: number, migrated: boolean): void {
    this.#calls.observe([driver, method, code, String(migrated)], durationMs / 1000);
  }

  /** All that there are. */
  plugins(sockets: readonly PluginSocketState[]): void {
    this.#plugins.remove(() => true);
    for (const { path, isRegistered } of sockets) {
      this.#plugins.set([path, "desired_state_of_world"], 1);
      if (isRegistered) this.#plugins.set([path, "actual_state_of_world"], 1);
    }
  }
}
