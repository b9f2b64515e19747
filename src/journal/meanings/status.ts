import type { statusFacts, statusTerms } from "../vocabulary/status.ts";
import type { Meanings } from "./meaning.ts";

export const statusMeanings = {
  PodPhaseChanged: { means: "The pod's phase in its API status changed." },
  ContainerStateChanged: { means: "A container's state in the pod's API status changed." },
  PatchPodStatus: {
    means: "The pod's status is updated at the API server.",
    remedy: "If it fails: check the connection to the API server and the node's permissions.",
  },
  DeletePod: { means: "A stopped pod that was marked for deletion is deleted at the API server." },
  StatusRefused: {
    means: "A new status would have moved a terminated container back to running; the old status is kept.",
    remedy: "Report it as a podwright bug, with the timeline.",
  },
  HostIPsIPFamilyMismatch: {
    means: "The node's address has another IP family than the cloud provider's.",
    remedy: "Set --node-ip explicitly.",
  },
  ConditionsChanged: { means: "Cause: someone else changed conditions of the pod." },
  NameTaken: { means: "Cause: a static pod of this node has the pod's name." },
  PodReleased: { means: "Cause: the deleted pod has stopped, so it is removed at the API server." },
  StatusChanged: { means: "Cause: the pod's status changed." },
  StatusDiffers: {
    means: "Cause: the pod's status at the API server differs from the node's; someone else may have changed it.",
  },
} as const satisfies Meanings<keyof (typeof statusTerms & typeof statusFacts)>;
