import type { proberFacts, proberTerms } from "../vocabulary/prober.ts";
import type { Meanings } from "./meaning.ts";

export const proberMeanings = {
  Unhealthy: {
    means: "A probe failed. The container is restarted, or becomes not ready, once failureThreshold is reached.",
    remedy: "Check the container's log, and the probe's path, port, timeoutSeconds and failureThreshold.",
  },
  ProbeWarning: { means: "A probe succeeded with a remark, such as a redirect to another host." },
  LivenessProbeFailed: { means: "Cause: the liveness probe reached failureThreshold, so the container is restarted." },
  LivenessProbeSucceeded: { means: "Cause: the liveness probe succeeded." },
  ProbeLate: { means: "Cause: the probes were late because podwright was busy." },
  ReadinessProbeFailed: { means: "Cause: the readiness probe failed, so the container is not ready." },
  ReadinessProbeSucceeded: { means: "Cause: the readiness probe succeeded, so the container is ready." },
  StartupProbeFailed: { means: "Cause: the startup probe reached failureThreshold, so the container is restarted." },
  StartupProbeSucceeded: { means: "Cause: the startup probe succeeded, so the other probes begin." },
} as const satisfies Meanings<keyof (typeof proberTerms & typeof proberFacts)>;
