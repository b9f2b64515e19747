import { type EventTerm, type Facts, normal, type Terms, warning } from "./term.ts";

const failedMount = { type: "Warning", reason: "FailedMount" } as const satisfies EventTerm;
const failedMap = { type: "Warning", reason: "FailedMapVolume" } as const satisfies EventTerm;

export const volumeTerms = {
  MountVolume: {
    kind: "action",
    failed: failedMount,
    why: "upkeep",
    phase: { kind: "volume", label: "volume {volume} ({type})" },
  },
  MapVolume: {
    kind: "action",
    failed: failedMap,
    why: "upkeep",
    phase: { kind: "volume", label: "volume {volume} ({type})" },
  },
  SuccessfulMountVolume: { kind: "note", event: { ...normal, words: "{message}" } },
  VolumeUnprocessed: { kind: "observation", event: failedMount, why: "remark" },
  VolumeUnattached: { kind: "observation", why: "remark" },
  VolumeWaitOver: { kind: "observation", why: "remark over" },
  UpdateVolume: { kind: "action", failed: failedMount, why: "upkeep" },
  FormatDisk: { kind: "action", why: "upkeep" },
  UnmountVolumes: { kind: "action" },
  StageVolume: { kind: "action", why: "upkeep" },
  PublishVolume: { kind: "action", why: "upkeep" },
  UnpublishVolume: { kind: "action" },
  UnstageVolume: { kind: "action" },
  RepublishVolume: { kind: "action", failed: failedMount, why: "upkeep" },
  RemapVolume: { kind: "action", failed: failedMap, why: "upkeep" },
  ExpandVolume: { kind: "action", why: "upkeep" },
  FileSystemResizeSuccessful: { kind: "note", event: { ...normal, words: "{message}" }, claimEvent: normal },
  FileSystemResizeFailed: { kind: "note", event: { ...warning, words: "{message}" }, claimEvent: warning },
  VolumeResizeFailed: { kind: "note", event: { ...warning, words: "{message}" } },
  VolumePermissionChangeInProgress: { kind: "note", event: { type: "Warning", words: "{message}" } },
  AlreadyMountedVolume: { kind: "note", event: { ...warning, words: "{message}" } },
  ClaimBound: { kind: "note" },
  KubeletPlaceTaken: { kind: "note" },
  KubeletPlaceLeft: { kind: "note" },
  DriverWaits: { kind: "decision", why: "stop" },
  DriverStopsFirst: { kind: "decision", why: "stop" },
  ClaimRemovalRequested: { kind: "input" },
  RemoveClaim: { kind: "action" },
  VolumeConditionAbnormal: { kind: "observation", event: { type: "Warning", words: "{message}" }, why: "remark" },
  VolumeConditionOver: { kind: "observation", why: "remark over" },
  VolumeSilent: { kind: "observation", why: "remark" },
  VolumeSilenceOver: { kind: "observation", why: "remark over" },
  VolumesLeft: { kind: "note" },
  VolumeUnknown: { kind: "note" },
  VolumeWarning: { kind: "observation", why: "remark" },
  VolumeWarningOver: { kind: "observation", why: "remark over" },
  PossibleMemoryBackedVolumesOnDisk: { kind: "note", event: warning },
} as const satisfies Terms;

export const volumeFacts = {
  VolumeWanted: {},
  VolumeUnwanted: {},
  PodOfClaimGone: {},
  VolumeToBeConfirmed: {},
  NoPodUsesVolume: {},
  VolumeHasGrown: {},
} as const satisfies Facts;
