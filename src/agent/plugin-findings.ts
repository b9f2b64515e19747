import type { PluginRegistry } from "../plugins/plugin-registry.ts";
import type { SubsystemHealth } from "../status/health.ts";

/** Plugins whose sockets are there, and that could not be registered. Pure. */
export function pluginFindings(refused: PluginRegistry["refused"]): SubsystemHealth[] {
  return refused.map(({ path, problem }) => ({
    ...{ name: "plugins", ok: true, warning: true },
    detail: `the plugin at ${path} is not registered: ${problem}`,
    remedy: "see the plugin's own log; it is tried again",
  }));
}
