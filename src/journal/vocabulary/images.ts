import { type EventTerm, type Facts, type Terms, warning } from "./term.ts";

/** A failed start because of the image; the image manager's own event is separate ({@link imageEvents}). */
const imageless = { type: "Warning", reason: "Failed", words: "Error: {name}" } as const satisfies EventTerm;
const pullFailed = { type: "Warning", reason: "Failed", words: "Error: {reason}" } as const satisfies EventTerm;

/** Images and their credentials. */
export const imageTerms = {
  PullImage: {
    kind: "action",
    failed: pullFailed,
    unknown: pullFailed,
    phase: { kind: "image", label: "pull {image}" },
  },
  ImagePresent: { kind: "decision" },
  ImagePullBackOff: {
    kind: "decision",
    event: imageless,
    startError: "ImagePullBackOff",
    phase: { kind: "wait", label: "image pull back-off" },
  },
  ErrImageNeverPull: { kind: "decision", event: imageless, startError: "ErrImageNeverPull" },
  ImageInspectError: { kind: "decision", event: imageless, startError: "ImageInspectError" },
  InvalidImageName: { kind: "decision", event: imageless, startError: "InvalidImageName" },
  FailedToRetrieveImagePullSecret: { kind: "observation", event: warning },
  AskCredentialProvider: { kind: "action" },
  CredentialProviderFailed: { kind: "observation", event: warning },
  VolumeImageMissing: { kind: "observation", event: pullFailed },
  RemoveImage: { kind: "action" },
  ImagesCollected: { kind: "note", why: "upkeep" },
  FreeDiskSpaceFailed: { kind: "note", event: { type: "Warning", words: "{message}" } },
  InvalidDiskCapacity: { kind: "note", event: { type: "Warning", words: "{message}" } },
  ImageGCFailed: { kind: "note", event: { type: "Warning", words: "{message}" } },
} as const satisfies Terms;

/** Upstream's image Events, by the reason in the entry's data field `event`. */
export const imageEvents = {
  Pulling: "Normal",
  Pulled: "Normal",
  BackOff: "Normal",
  Failed: "Warning",
  ErrImageNeverPull: "Warning",
  InspectFailed: "Warning",
} as const satisfies Readonly<Record<string, EventTerm["type"]>>;

export type ImageEvent = keyof typeof imageEvents;

export const imageFacts = {
  ImageFsFull: {},
  ImageTooOld: {},
} as const satisfies Facts;
