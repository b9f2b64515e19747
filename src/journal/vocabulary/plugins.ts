import type { Terms } from "./term.ts";

/** Plugins that register on the node, CSI drivers among them. */
export const pluginTerms = {
  PluginRegistered: { kind: "note" },
  PluginRefused: { kind: "note" },
  PluginGone: { kind: "note" },
  CSINodeNotPublished: { kind: "note" },
} as const satisfies Terms;
