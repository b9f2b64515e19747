import type { admissionFacts, admissionTerms } from "../vocabulary/admission.ts";
import type { Meaning, Meanings } from "./meaning.ts";

const lowerRequests = "Lower the pod's requests, stop other pods, or use a larger node.";

/** An extended resource, whose name the cluster chooses, is insufficient. */
export const outOfMeaning: Meaning = {
  means: "The pod was rejected: the node has too little of this extended resource left.",
  remedy: "Free the resource, or request less of it.",
};

export const admissionMeanings = {
  AppArmor: {
    means: "The pod was rejected: this node cannot enforce its AppArmor profile.",
    remedy: "Enable AppArmor on the node, or load the profile that the message names.",
  },
  Evicted: {
    means: "The pod was rejected because the node is under memory, disk or PID pressure.",
    remedy: "Free the resource that the message names; 'podwright doctor' shows the pressure.",
  },
  OutOfcpu: { means: "The pod was rejected: the node has too little allocatable CPU left.", remedy: lowerRequests },
  "OutOfephemeral-storage": {
    means: "The pod was rejected: the node has too little allocatable ephemeral storage left.",
    remedy: lowerRequests,
  },
  OutOfmemory: {
    means: "The pod was rejected: the node has too little allocatable memory left.",
    remedy: lowerRequests,
  },
  VolumeAttachmentLimitExceeded: {
    means: "The pod was rejected: no more of the driver's volumes can be attached to the node.",
    remedy: "Move pods with volumes of that driver to other nodes.",
  },
  OutOfpods: {
    means: "The pod was rejected: the node already runs maxPods pods.",
    remedy: "Raise maxPods, or stop pods.",
  },
  PodFeatureUnsupported: {
    means: "The pod was rejected: it uses a feature that this version of podwright does not support.",
    remedy: "Remove the field that the message names, or run the pod on another node.",
  },
  PodOSNotSupported: {
    means: "The pod was rejected: its os field is not linux.",
    remedy: "Correct spec.os, or run the pod on a node with that operating system.",
  },
  PodOSSelectorNodeLabelDoesNotMatch: {
    means: "The pod was rejected: its selector for kubernetes.io/os does not match this node.",
    remedy: "Correct the node selector.",
  },
  SupplementalGroupsPolicyNotSupported: {
    means: "The pod was rejected: the node's container runtime does not support supplementalGroupsPolicy Strict.",
    remedy: "Upgrade the container runtime, or use policy Merge.",
  },
  SysctlForbidden: {
    means: "The pod was rejected: it sets a sysctl that is not allowed.",
    remedy: "Add the sysctl to allowedUnsafeSysctls, or remove it from the pod.",
  },
  UnexpectedAdmissionError: {
    means: "The pod was rejected: no set of pods could be preempted to make room for it, or admission failed.",
    remedy: "See the message; stop pods of equal or higher priority if resources are missing.",
  },
  NodeAffinity: {
    means: "The pod was rejected: this node does not match its node selector or required node affinity.",
    remedy: "Label the node, or change the pod's selector.",
  },
  NodeName: { means: "The pod was rejected: its nodeName is another node.", remedy: "Correct spec.nodeName." },
  NodeShutdown: { means: "The pod was rejected: the node is shutting down.", remedy: "Create the pod again." },
  NodePorts: {
    means: "The pod was rejected: a host port that it needs is used by another pod of this node.",
    remedy: "Use another hostPort, or stop the other pod.",
  },
  TaintToleration: {
    means: "The pod was rejected: the node has a NoExecute taint that the pod does not tolerate.",
    remedy: "Remove the taint, or add a toleration.",
  },
  AdmissionWaits: {
    means: "The pod fits once pods that are being stopped have released their resources, and waits for that.",
  },
  Preempting: { means: "A critical pod does not fit: other pods are stopped for it." },
  CriticalPod: { means: "Cause: a critical pod needs the resources." },
  RoomMade: { means: "Cause: a pod has stopped or the node has changed, so the admission of waiting pods is retried." },
} as const satisfies Meanings<keyof (typeof admissionTerms & typeof admissionFacts)>;
