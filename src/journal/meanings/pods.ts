import type { podFacts, podTerms } from "../vocabulary/pods.ts";
import type { Meanings } from "./meaning.ts";

export const podMeanings = {
  PodAdopted: { means: "A static pod that already runs under another UID keeps that UID instead of restarting." },
  PodsFound: { means: "After a start: how many desired pods already run." },
  PodsTakenUp: { means: "After a start: the running pods that podwright manages from here on." },
  LastKnownPods: {
    means: "The API server did not answer after a start, so running pods are managed from their last known specs.",
    remedy: "Check the connection to the API server.",
  },
  PodWaits: { means: "The pod waits until an earlier pod of the same name is gone." },
  PodTerminating: { means: "The pod is being stopped; the cause has the reason." },
  PodTerminated: { means: "All containers of the pod have stopped." },
  PodFinished: { means: "The pod is removed from the node." },
  ComputePodActions: { means: "A decision about the pod: which containers to stop, create and start." },
  BackOff: {
    means: "The container keeps exiting; its restart waits for the crash-loop back-off (10 s, doubled up to 5 min).",
    remedy: "See 'podwright logs --previous POD' for the reason of the exits.",
  },
  StartRetry: {
    means: "The last start failed and is retried after a pause.",
    remedy: "See the failure before it in 'podwright timeline POD'.",
  },
  FailedSync: { means: "A step of the pod's worker failed and is retried.", remedy: "See the message." },
  FailedKillPod: {
    means: "The pod could not be stopped; it is retried.",
    remedy: "See the message and the runtime's log.",
  },
  ResizeStarted: { means: "New resources were allocated to the running pod and are being applied." },
  ResizeDeferred: {
    means: "The node has no room for the resize now, or takes no such pod; it is retried.",
    remedy: "Stop other pods, request less, or end the condition that the message names.",
  },
  ResizeInfeasible: {
    means: "The pod cannot be resized like this; the message says why.",
    remedy: "Request what can change while the pod runs, or replace the pod.",
  },
  ResizeCompleted: { means: "The pod's containers have their new resources." },
  ResizeError: {
    means: "Applying the new resources failed; it is retried.",
    remedy: "See the message; memory in use cannot be reclaimed.",
  },
  ExceededGracePeriod: {
    means: "The pod did not stop within its grace period.",
    remedy: "Check the container runtime; processes in state D cannot be killed.",
  },
  RemoveLeftovers: { means: "Files, logs or cgroups of a removed pod are deleted." },
  CreateMirrorPod: { means: "The mirror pod of a static pod is created at the API server." },
  DeleteMirrorPod: { means: "The mirror pod of a static pod is deleted at the API server." },
  BackOffExpired: { means: "Cause: the container's crash-loop back-off has expired." },
  DeadlineExceeded: {
    means: "Cause: the pod exceeded its activeDeadlineSeconds and is stopped.",
    remedy: "Raise or remove spec.activeDeadlineSeconds.",
  },
  MirrorPodDeleted: { means: "Cause: the mirror pod was deleted at the API server; the static pod keeps running." },
  MirrorPodMissing: { means: "Cause: the static pod has no mirror pod." },
  MirrorPodOrphaned: { means: "Cause: the mirror pod has no static pod." },
  MirrorPodOutdated: { means: "Cause: the mirror pod shows an earlier version of its static pod." },
  MirrorPodOver: { means: "Cause: the mirror pod shows an instance of its static pod that has ended." },
  OperationMoved: { means: "Cause: an operation on the pod progressed or ended." },
  OrphanedPod: { means: "Cause: no source has the pod." },
  PodCompleted: { means: "Cause: all containers have exited and are not restarted." },
  PodDeleted: { means: "Cause: the pod was deleted at the API server." },
  PodHadEnded: { means: "Cause: the pod had already ended before podwright started." },
  PodsRemoved: { means: "Cause: a pod was removed, which may have made room." },
  ResizeRetry: { means: "Cause: a pending resize is due for a retry." },
  Resync: { means: "Cause: the periodic resync of the pod, every 60 to 90 s." },
  RetryDue: { means: "Cause: a failed step is due for its retry." },
  RivalPod: { means: "Cause: an earlier pod of the same name still exists." },
} as const satisfies Meanings<keyof (typeof podTerms & typeof podFacts)>;
