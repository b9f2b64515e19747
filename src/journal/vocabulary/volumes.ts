import { type EventTerm, type Facts, type Terms, warning } from "./term.ts";

const failedMount = { type: "Warning", reason: "FailedMount" } as const satisfies EventTerm;

export const volumeTerms = {
  MountVolume: {
    kind: "action",
    failed: failedMount,
    why: "upkeep",
    phase: { kind: "volume", label: "volume {volume} ({type})" },
  },
  VolumeUnprocessed: { kind: "observation", event: failedMount, why: "remark" },
  VolumeUnattached: { kind: "observation", why: "remark" },
  VolumeWaitOver: { kind: "observation", why: "remark over" },
  UpdateVolume: { kind: "action", failed: failedMount, why: "upkeep" },
  UnmountVolumes: { kind: "action" },
  VolumesLeft: { kind: "note" },
  VolumeWarning: { kind: "observation", why: "remark" },
  VolumeWarningOver: { kind: "observation", why: "remark over" },
  PossibleMemoryBackedVolumesOnDisk: { kind: "note", event: warning },
} as const satisfies Terms;

export const volumeFacts = {} as const satisfies Facts;
