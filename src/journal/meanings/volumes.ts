import type { volumeFacts, volumeTerms } from "../vocabulary/volumes.ts";
import type { Meanings } from "./meaning.ts";

export const volumeMeanings = {
  MountVolume: {
    means: "A volume of the pod is set up.",
    remedy: "If it failed: create the object that the message names, or correct the volume.",
  },
  MapVolume: {
    means: "A block volume of the pod is set up.",
    remedy: "If it failed: see the message, and the log of the volume's driver.",
  },
  SuccessfulMountVolume: { means: "A block volume's device is bind-mounted and linked for the pod." },
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
  FormatDisk: {
    means: "A device of a local PersistentVolume gets a file system, because nothing is on it.",
    remedy: "If it fails: see the message, and install mkfs for that type of file systems.",
  },
  UnmountVolumes: { means: "The pod's volumes are unmounted and removed." },
  StageVolume: {
    means: "A CSI driver stages a volume on the node (NodeStageVolume), once for all its pods.",
    remedy: "If it fails: see the driver's own log on this node.",
  },
  PublishVolume: {
    means: "A CSI driver makes a volume available to one pod (NodePublishVolume).",
    remedy: "If it fails: see the driver's own log on this node.",
  },
  UnpublishVolume: {
    means: "A CSI driver unmounts a volume from a pod (NodeUnpublishVolume).",
    remedy: "If it fails: see the driver's own log; the pod's volumes stay until it succeeds.",
  },
  UnstageVolume: { means: "A CSI driver unmounts a volume from the node (NodeUnstageVolume) after its last pod." },
  RepublishVolume: {
    means:
      "A CSI volume is published again: to confirm it after a restart, or because its driver requests that periodically.",
    remedy: "If it fails, the pod keeps its mount; see the driver's own log.",
  },
  RemapVolume: {
    means:
      "A CSI block volume is published again: to confirm it after a restart, or because its driver requests that periodically.",
    remedy: "If it fails, the pod keeps its device; see the driver's own log.",
  },
  ExpandVolume: {
    means: "A CSI driver expands a volume on this node (NodeExpandVolume), after its controller did.",
    remedy: "If it fails, the volume keeps its size; see the driver's own log on this node.",
  },
  FileSystemResizeSuccessful: {
    means: "A volume and its file system were expanded to the size of its PersistentVolume.",
  },
  FileSystemResizeFailed: {
    means: "A volume is not expanded to its new size, because the pod uses its claim read-only.",
    remedy: "Use the claim in a pod with write access.",
  },
  VolumeResizeFailed: {
    means: "A volume of a running pod could not be expanded; it is retried, and the pod keeps running.",
    remedy: "See the message, the claim's status, and the driver's own log.",
  },
  VolumePermissionChangeInProgress: {
    means: "Changing the group of a volume's files to the pod's fsGroup takes long.",
    remedy: "Set fsGroupChangePolicy: OnRootMismatch in the pod's securityContext.",
  },
  VolumeGroupRefused: {
    means: "Storage refused to give files of a volume to the pod's fsGroup; as upstream, the pod starts all the same.",
    remedy: "If the pod cannot use them: see the message; exports with root_squash and read-only volumes do so.",
  },
  AlreadyMountedVolume: {
    means: "A local volume is in use by another pod and has another group than this pod's fsGroup; it is not changed.",
    remedy: "Give pods that share a volume the same fsGroup.",
  },
  VolumeWanted: { means: "Cause: a pod that starts uses the volume." },
  VolumeUnwanted: { means: "Cause: the pod that used the volume has ended." },
  PodOfClaimGone: { means: "Cause: the pod whose ephemeral volume the claim is for is gone." },
  VolumeToBeConfirmed: { means: "Cause: a running pod uses the volume, and its driver is to confirm or renew it." },
  VolumeHasGrown: {
    means: "Cause: a PersistentVolume is larger than its claim's status, because its user requested more.",
  },
  NoPodUsesVolume: { means: "Cause: no pod on this node uses the volume any more." },
  ClaimBound: { means: "A claim of `podwright run` was bound to a PersistentVolume of a manifest, or to a directory." },
  KubeletPlaceTaken: {
    means:
      "The engine of `podwright run` mounted its pods' directories at /var/lib/kubelet, where CSI drivers expect them.",
  },
  KubeletPlaceLeft: {
    means:
      "A kubelet has started at /var/lib/kubelet: the directories of `podwright run` are no longer there, and no CSI driver can start.",
    remedy: "Stop that kubelet, or podwright's pods with CSI drivers and volumes.",
  },
  DriverWaits: {
    means:
      "A CSI driver that is a pod of `podwright run` is stopped after pods whose volumes are still being released.",
    remedy: "If it takes long: see why those pods do not end; `podwright stop --grace 0` does not wait for them.",
  },
  DriverStopsFirst: {
    means: "A CSI driver is stopped while pods still use CSI volumes: their end waits for a driver that runs.",
    remedy: "Run the driver again, then stop those pods.",
  },
  ClaimRemovalRequested: { means: "A user requested the removal of a claim of `podwright run`." },
  RemoveClaim: {
    means: "A claim of `podwright run` is removed, with its data if that is in the state directory.",
    remedy: "If it failed: see the message; data that was not removed yet is still there.",
  },
  VolumeConditionAbnormal: {
    means: "A CSI driver reports a volume of the pod as unhealthy (feature gate CSIVolumeHealth).",
    remedy: "See the message, and the driver's own log on this node.",
  },
  VolumeConditionOver: { means: "The CSI driver no longer reports the volume as unhealthy." },
  VolumeSilent: {
    means:
      "Storage or its driver has not answered the set-up, upkeep, teardown, unstaging or measurement of a volume for 30 s.",
    remedy: "See the storage server, or the driver's own log on this node; `podwright doctor` shows since when.",
  },
  VolumeSilenceOver: { means: "The storage has answered, or nothing waits for it any more." },
  VolumeHeld: {
    means: "A volume of a pod that has ended cannot be torn down or unstaged yet; it is retried.",
    remedy: "See the message: its driver must run on this node again, or see the driver's own log.",
  },
  VolumeHeldOver: {
    means:
      "The volume is torn down or unstaged, its next attempt has another problem or no answer, or a pod uses it again.",
  },
  VolumesLeft: {
    means: "Volumes on disk belong to no volume plugin of this node; they are left alone.",
    remedy: "Unmount and remove them by hand once you know their owner.",
  },
  VolumeUnknown: {
    means:
      "A CSI volume is mounted, and its data file is missing or damaged, or a directory of volumes cannot be listed: " +
      "which volumes of which drivers these are is unknown.",
    remedy:
      "Nothing is detached that it could be; unmount it once no pod uses it, if podwright does not find its owner.",
  },
  VolumeWarning: {
    means: "A volume is doubtful, e.g. a hostPath of another type, or a subPath of it cannot be mounted.",
    remedy: "See the message.",
  },
  VolumeWarningOver: { means: "The warning no longer applies." },
  PossibleMemoryBackedVolumesOnDisk: {
    means: "Memory-backed volumes may be swapped to disk: the kernel does not support noswap on tmpfs.",
    remedy: "Use Linux 6.4 or newer, or turn swap off.",
  },
} as const satisfies Meanings<keyof (typeof volumeTerms & typeof volumeFacts)>;
