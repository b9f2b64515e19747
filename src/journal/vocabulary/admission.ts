import { type Facts, normal, type Term, type Terms } from "./term.ts";

const refusal = { type: "Warning", words: "{refusal}" } as const;
const refused = { kind: "decision", event: refusal, refuses: "own name" } as const satisfies Term;
const refusedUncounted = { kind: "decision", event: refusal, refuses: "Other" } as const satisfies Term;

/** Admission of pods, with upstream's reasons. */
export const admissionTerms = {
  AppArmor: refused,
  Evicted: refused,
  NodeShutdown: refused,
  OutOfcpu: refused,
  "OutOfephemeral-storage": refused,
  OutOfmemory: refused,
  OutOfpods: refused,
  PodFeatureUnsupported: refused,
  PodOSNotSupported: refused,
  PodOSSelectorNodeLabelDoesNotMatch: refused,
  SupplementalGroupsPolicyNotSupported: refused,
  SysctlForbidden: refused,
  UnexpectedAdmissionError: refused,
  VolumeAttachmentLimitExceeded: refused,
  NodeAffinity: refusedUncounted,
  NodeName: refusedUncounted,
  NodePorts: refusedUncounted,
  TaintToleration: refusedUncounted,
  AdmissionWaits: { kind: "decision", event: normal },
  Preempting: { kind: "decision", event: { type: "Warning" } },
} as const satisfies Terms;

/** A resource is insufficient; its name may come from the cluster. */
export const outOfTerm = {
  kind: "decision",
  event: refusal,
  refuses: "OutOfExtendedResources",
} as const satisfies Term;

export const admissionFacts = {
  CriticalPod: {},
  RoomMade: {},
} as const satisfies Facts;
