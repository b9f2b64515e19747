import { type Facts, type Terms, warning } from "./term.ts";

/** Of the API status of pods, and of its way to the API server. */
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
