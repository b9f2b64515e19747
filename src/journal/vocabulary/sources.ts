import { type Facts, type Terms, warning } from "./term.ts";

/** Manifests and their pods. */
export const sourceTerms = {
  ManifestRejected: { kind: "input" },
  ManifestMended: { kind: "input" },
  ManifestWarning: { kind: "input", why: "remark" },
  ManifestWarningOver: { kind: "input", why: "remark over" },
  PodAdded: { kind: "input" },
  PodChanged: { kind: "input" },
  PodRemoved: { kind: "input" },
  FailedValidation: { kind: "decision", event: warning, why: "shadow" },
  ObjectsChanged: { kind: "input" },
} as const satisfies Terms;

export const sourceFacts = {
  DuplicateManifest: {},
  ManifestAdded: {},
  ManifestChanged: {},
  ManifestRemoved: {},
  ManifestReturned: {},
} as const satisfies Facts;
