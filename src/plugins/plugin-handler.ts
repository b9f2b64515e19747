/** A plugin's own description. */
export interface PluginInfo {
  /** `CSIPlugin`, `DevicePlugin`, `DRAPlugin`. */
  readonly type: string;
  readonly name: string;
  /** Absolute path of the plugin's socket. */
  readonly endpoint: string;
  readonly versions: readonly string[];
}

/** Handles plugins of one type (upstream's PluginHandler). */
export interface PluginHandler {
  readonly type: string;
  /** Why the plugin is refused, in upstream's words; undefined: accepted. */
  validate(plugin: PluginInfo): string | undefined;
  /**
   * Rejects with the reason for a failure, which the plugin receives; the registration is retried. Changes nothing once
   * the signal has aborted: another registration of the plugin may be in progress.
   */
  register(plugin: PluginInfo, signal: AbortSignal): Promise<void>;
  /**
   * The registration failed, or the plugin's socket was removed or replaced, also while {@link register} is in progress.
   * @param plugin the object that it received, which identifies the registration
   */
  deregister(plugin: PluginInfo): void;
}
