import { type Facts, type Terms, warning } from "./term.ts";

/** API status of pods, and its updates at the API server. */
export const statusTerms = {
  PodPhaseChanged: { kind: "observation" },
  ContainerStateChanged: { kind: "observation" },
  PatchPodStatus: { kind: "action", why: "upkeep" },
  DeletePod: { kind: "action" },
  StatusRefused: { kind: "note" },
  HostIPsIPFamilyMismatch: { kind: "note", event: warning },
} as const satisfies Terms;

export const statusFacts = {
  ConditionsChanged: {},
  NameTaken: {},
  PodReleased: {},
  StatusChanged: {},
  StatusDiffers: {},
} as const satisfies Facts;
