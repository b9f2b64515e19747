import { type Facts, normal, type Terms, warning } from "./term.ts";

/** The node: its Node object, pressure, certificates, tokens and kernel. */
export const nodeTerms = {
  NodeRegistered: { kind: "note" },
  NodeDeleted: { kind: "note" },
  NodeReady: { kind: "note", event: normal },
  NodeNotReady: { kind: "note", event: normal },
  NodeSchedulable: { kind: "note", event: normal },
  NodeNotSchedulable: { kind: "note", event: normal },
  NodeHasSufficientMemory: { kind: "note", event: normal },
  NodeHasInsufficientMemory: { kind: "note", event: normal },
  NodeHasNoDiskPressure: { kind: "note", event: normal },
  NodeHasDiskPressure: { kind: "note", event: normal },
  NodeHasSufficientPID: { kind: "note", event: normal },
  NodeHasInsufficientPID: { kind: "note", event: normal },
  Rebooted: { kind: "note", event: warning },
  CgroupV1: { kind: "note", event: { type: "Warning", words: "{message}" } },
  CheckLimitsForResolvConf: { kind: "note", event: { type: "Warning", words: "{message}" } },
  NodePressureChanged: { kind: "observation" },
  OOMKilling: { kind: "observation", event: warning, why: "tidied" },
  SystemOOM: { kind: "observation", nodeEvent: { type: "Warning", words: "{nodeMessage}" }, why: "tidied" },
  CloudMetadataAnswers: { kind: "note" },
  CloudMetadataFailed: { kind: "note", event: warning },
  RequestCertificate: { kind: "action" },
  CertificateNotIssued: { kind: "note", event: warning },
  RequestToken: { kind: "action", why: "upkeep" },
  DeleteResourceSlices: { kind: "action" },
} as const satisfies Terms;

export const nodeFacts = {
  CertificateExpired: {},
  CertificateExpires: {},
  CertificateIsInitial: {},
  CertificateNamesDiffer: {},
  NoCertificate: {},
  TokenExpires: {},
  TokenIssued: {},
  TokenWanted: {},
} as const satisfies Facts;
