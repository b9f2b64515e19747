import type { nodeFacts, nodeTerms } from "../vocabulary/node.ts";
import type { Meanings } from "./meaning.ts";

export const nodeMeanings = {
  NodeRegistered: { means: "The Node was created, or found, at the API server." },
  NodeDeleted: {
    means: "The Node was deleted at the API server while the kubelet ran.",
    remedy: "Restart podwright to register it again.",
  },
  NodeReady: { means: "The Node's Ready condition became True." },
  NodeNotReady: {
    means: "The Node's Ready condition became False.",
    remedy: "See the condition's message; mostly the container runtime or its network is not ready.",
  },
  NodeSchedulable: { means: "The node was uncordoned." },
  NodeNotSchedulable: { means: "The node was cordoned: the scheduler assigns no new pods to it." },
  NodeHasSufficientMemory: { means: "The MemoryPressure condition became False." },
  NodeHasInsufficientMemory: {
    means: "Available memory is below the eviction threshold: MemoryPressure is True.",
    remedy: "Stop pods, lower their limits, or add memory.",
  },
  NodeHasNoDiskPressure: { means: "The DiskPressure condition became False." },
  NodeHasDiskPressure: {
    means: "Free disk space or inodes are below the eviction threshold: DiskPressure is True.",
    remedy: "Free disk space: images, logs, emptyDir volumes.",
  },
  NodeHasSufficientPID: { means: "The PIDPressure condition became False." },
  NodeHasInsufficientPID: {
    means: "Free process IDs are below the eviction threshold: PIDPressure is True.",
    remedy: "Find the pod with too many processes, and set podPidsLimit.",
  },
  Rebooted: { means: "The machine has rebooted since the last run of podwright." },
  CgroupV1: { means: "The machine uses cgroup v1, which is deprecated.", remedy: "Migrate the machine to cgroup v2." },
  CheckLimitsForResolvConf: {
    means: "The node's resolv.conf has more search domains than pods can have; some are omitted.",
    remedy: "Shorten the search line of resolvConf.",
  },
  NodePressureChanged: { means: "The node came under pressure, or recovered; the message names the signals." },
  OOMKilling: {
    means: "The kernel killed a process of a container that exceeded its memory limit.",
    remedy: "Raise the container's memory limit, or find out why it uses more.",
  },
  SystemOOM: {
    means: "The machine ran out of memory and the kernel killed a process.",
    remedy: "Set memory limits for pods, and reserve memory for the system (systemReserved).",
  },
  CloudMetadataAnswers: { means: "The cloud's metadata service answers again." },
  CloudMetadataFailed: {
    means: "The cloud's metadata service cannot be read; the last known metadata stays in use.",
    remedy: "Check --cloud-metadata, and that the node reaches the metadata service.",
  },
  RequestCertificate: {
    means: "A certificate for the node is requested from the API server.",
    remedy: "If it does not end: approve the request (kubectl get csr; kubectl certificate approve NAME).",
  },
  CertificateNotIssued: {
    means: "The certificate request was denied, failed or timed out; it is retried.",
    remedy: "See the message; check who approves and signs certificate requests in the cluster.",
  },
  RequestToken: { means: "A service account token is requested from the API server." },
  DeleteResourceSlices: {
    means: "At the start the node's ResourceSlices are deleted: no driver of devices has registered yet.",
    remedy: "If it keeps failing: check that nodes may delete ResourceSlices (the Node authorizer allows it).",
  },
  CertificateExpired: { means: "Cause: the node's certificate has expired." },
  CertificateExpires: { means: "Cause: the node's certificate expires soon." },
  CertificateIsInitial: { means: "Cause: the node still uses the certificate that its kubeconfig came with." },
  CertificateNamesDiffer: { means: "Cause: the certificate lacks a name or address of the node." },
  NoCertificate: { means: "Cause: the node has no usable certificate." },
  TokenExpires: { means: "Cause: a pod's service account token expires soon." },
  TokenIssued: { means: "Cause: a service account token was issued." },
  TokenWanted: { means: "Cause: a volume or credential provider of the pod needs a token." },
} as const satisfies Meanings<keyof (typeof nodeTerms & typeof nodeFacts)>;
