import type { volumeFacts, volumeTerms } from "../vocabulary/volumes.ts";
import type { Meanings } from "./meaning.ts";

export const volumeMeanings = {
  MountVolume: {
    means: "A volume of the pod is set up.",
    remedy: "If it failed: create the object that the message names, or correct the volume.",
  },
  VolumeUnprocessed: {
    means: "The pod waits for a claim that cannot be used yet.",
    remedy: "Create or bind the claim that the message names, or correct the pod's volume.",
  },
  VolumeUnattached: {
    means: "The pod waits for a volume that is not attached to the node yet.",
    remedy: "See the VolumeAttachment, and the driver's controller and the attach-detach controller, which attach it.",
  },
  VolumeWaitOver: { means: "The pod no longer waits for the volume." },
  UpdateVolume: { means: "A ConfigMap, Secret, token or downward API volume gets new content." },
  UnmountVolumes: { means: "The pod's volumes are unmounted and removed." },
  VolumesLeft: {
    means: "Volumes on disk belong to no volume plugin of this node; they are left alone.",
    remedy: "Unmount and remove them by hand once you know their owner.",
  },
  VolumeWarning: {
    means: "A volume is usable but doubtful, e.g. a hostPath of another type.",
    remedy: "See the message.",
  },
  VolumeWarningOver: { means: "The warning no longer applies." },
  PossibleMemoryBackedVolumesOnDisk: {
    means: "Memory-backed volumes may be swapped to disk: the kernel does not support noswap on tmpfs.",
    remedy: "Use Linux 6.4 or newer, or turn swap off.",
  },
} as const satisfies Meanings<keyof (typeof volumeTerms & typeof volumeFacts)>;
