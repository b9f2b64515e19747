import type { volumeFacts, volumeTerms } from "../vocabulary/volumes.ts";
import type { Meanings } from "./meaning.ts";

export const volumeMeanings = {
  MountVolume: {
    means: "A volume of the pod is set up.",
    remedy: "If it failed: create the object that the message names, or correct the volume.",
  },
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
