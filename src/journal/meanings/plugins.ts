import type { pluginTerms } from "../vocabulary/plugins.ts";
import type { Meanings } from "./meaning.ts";

export const pluginMeanings = {
  PluginRegistered: { means: "A plugin of the node (e.g. a CSI driver) was registered." },
  PluginRefused: {
    means: "A plugin's socket exists, but the plugin could not be registered; it is retried.",
    remedy: "See the message; check the plugin's registrar, its endpoint and its versions.",
  },
  PluginGone: {
    means:
      "The socket of a plugin was removed or replaced, or the plugin may be that of a kubelet that has started at /var/lib/kubelet: it is deregistered.",
  },
  CSINodeNotPublished: {
    means:
      "The node's CSINode, or a CSI driver's entry in it, cannot be written at the API server. A new node is not ready before it has a CSINode; a driver without an entry is not registered.",
    remedy: "See the message; check that the node may write its CSINode, and the driver's node ID and topology.",
  },
} as const satisfies Meanings<keyof typeof pluginTerms>;
