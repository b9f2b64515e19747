/** What a plugin says of itself. */
export interface PluginInfo {
  /** `CSIPlugin`, `DevicePlugin`, `DRAPlugin`. */
  readonly type: string;
  readonly name: string;
  /** The socket to work with, absolute. */
  readonly endpoint: string;
  readonly versions: readonly string[];
}

/** Works with the plugins of one type (upstream's PluginHandler). */
export interface PluginHandler {
  readonly type: string;
  /** Why the plugin is refused, in upstream's words; undefined: it is taken. */
  validate(plugin: PluginInfo): string | undefined;
  /** Takes the plugin up. Rejects with why it can't be: the plugin is told, and tried again. */
  register(plugin: PluginInfo, signal: AbortSignal): Promise<void>;
  /** The plugin's socket is gone, or another one took its place. */
  deregister(plugin: PluginInfo): void;
}
