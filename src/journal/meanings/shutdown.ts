import type { shutdownTerms } from "../vocabulary/shutdown.ts";
import type { Meanings } from "./meaning.ts";

export const shutdownMeanings = {
  Shutdown: {
    means: "A shutdown of the machine was announced on the system bus: the node stops its pods and admits no new ones.",
  },
  ShutdownCancelled: { means: "The shutdown was cancelled: the node admits pods again, and restarts its static pods." },
  ShutdownGroupEnded: {
    means: "The pods of one shutdown group have ended, or its grace period is over.",
    remedy: "Raise the group's shutdown grace period if its pods need longer.",
  },
  Terminated: { means: "The pod is stopped because the node is shutting down.", remedy: "Create the pod again." },
} as const satisfies Meanings<keyof typeof shutdownTerms>;
