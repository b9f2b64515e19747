import type { shutdownTerms } from "../vocabulary/shutdown.ts";
import type { Meanings } from "./meaning.ts";

export const shutdownMeanings = {
  Shutdown: {
    means: "A shutdown of the machine was announced: the node ends its pods and rejects new ones.",
  },
  ShutdownCancelled: {
    means: "The shutdown was cancelled: the node accepts pods again, and restarts its static pods.",
  },
  ShutdownGroupEnded: {
    means: "The pods of one shutdown group have ended, or their time has expired.",
    remedy: "Give a group whose pods need longer a longer shutdown grace period.",
  },
  Terminated: { means: "The pod is stopped because the node is shutting down.", remedy: "Create the pod again." },
} as const satisfies Meanings<keyof typeof shutdownTerms>;
