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
    means: "The node's CSINode cannot be written at the API server; the node is not ready until then.",
    remedy: "Check that the API server serves storage.k8s.io/v1, and that the node may write its CSINode.",
  },
} as const satisfies Meanings<keyof typeof pluginTerms>;
