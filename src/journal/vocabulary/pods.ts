import { type Facts, normal, type Terms, warning } from "./term.ts";

/** Pod workers, resizes, and what delays a pod. */
export const podTerms = {
  PodAdopted: { kind: "decision" },
  PodsFound: { kind: "note" },
  PodsTakenUp: { kind: "note" },
  LastKnownPods: { kind: "note" },
  PodWaits: {
    kind: "decision",
    phase: { kind: "wait", label: "waited for the removal of the pod of the same name" },
  },
  PodTerminating: { kind: "decision", why: "stop" },
  PodTerminated: { kind: "decision", why: "stop" },
  PodFinished: { kind: "decision", why: "stop" },
  ComputePodActions: { kind: "decision" },
  BackOff: {
    kind: "decision",
    event: { type: "Warning", words: "Back-off restarting failed container {container} in pod {pod}" },
    phase: { kind: "wait", label: "crash-loop back-off" },
  },
  StartRetry: { kind: "decision", phase: { kind: "wait", label: "waited before a retry" } },
  FailedSync: { kind: "observation", event: warning },
  FailedKillPod: { kind: "observation", event: { type: "Warning", words: "error killing pod: {message}" } },
  ResizeStarted: { kind: "decision", event: normal },
  ResizeDeferred: { kind: "decision", event: warning },
  ResizeInfeasible: { kind: "decision", event: warning },
  ResizeCompleted: { kind: "observation", event: normal },
  ResizeError: { kind: "observation", event: warning },
  ExceededGracePeriod: { kind: "decision", event: warning },
  RemoveLeftovers: { kind: "action" },
  CreateMirrorPod: { kind: "action", why: "shadow" },
  DeleteMirrorPod: { kind: "action", why: "shadow" },
} as const satisfies Terms;

export const podFacts = {
  BackOffExpired: {},
  DeadlineExceeded: {
    end: {
      type: "Normal",
      reason: "DeadlineExceeded",
      words: "Pod was active on the node longer than the specified deadline",
    },
  },
  MirrorPodDeleted: {},
  MirrorPodMissing: {},
  MirrorPodOrphaned: {},
  MirrorPodOutdated: {},
  MirrorPodOver: {},
  OperationMoved: { why: "seen" },
  OrphanedPod: {},
  PodCompleted: {},
  PodDeleted: {},
  PodHadEnded: {},
  PodsRemoved: {},
  ResizeRetry: {},
  Resync: {},
  RetryDue: {},
  RivalPod: {},
} as const satisfies Facts;
