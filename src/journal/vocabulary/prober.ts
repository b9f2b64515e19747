import { type Facts, type Terms, warning } from "./term.ts";

export const proberTerms = {
  Unhealthy: { kind: "observation", event: warning },
  ProbeWarning: { kind: "observation", event: warning },
} as const satisfies Terms;

export const proberFacts = {
  LivenessProbeFailed: {},
  LivenessProbeSucceeded: {},
  ProbeLate: {},
  ReadinessProbeFailed: {},
  ReadinessProbeSucceeded: { why: "seen" },
  StartupProbeFailed: {},
  StartupProbeSucceeded: { why: "seen" },
} as const satisfies Facts;
