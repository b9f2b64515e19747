import { type EventTerm, type Facts, normal, type Terms, warning } from "./term.ts";

const failed = { type: "Warning", reason: "Failed", words: "Error: {message}" } as const satisfies EventTerm;
const sandboxFailed = {
  type: "Warning",
  reason: "FailedCreatePodSandBox",
  words: "Failed to create pod sandbox: {message}",
} as const satisfies EventTerm;

/** Sandboxes and containers: operations on them, and what prevents those. */
export const runtimeTerms = {
  RunPodSandbox: {
    kind: "action",
    again: {
      type: "Normal",
      reason: "SandboxChanged",
      words: "Pod sandbox changed, it will be killed and re-created.",
    },
    failed: sandboxFailed,
    phase: { kind: "sandbox", label: "sandbox" },
  },
  StopPodSandbox: { kind: "action" },
  RemovePodSandbox: { kind: "action" },
  CreateContainer: {
    kind: "action",
    done: { type: "Normal", reason: "Created", words: "Container created" },
    failed,
    phase: { kind: "create", label: "create" },
  },
  StartContainer: {
    kind: "action",
    done: { type: "Normal", reason: "Started", words: "Container started" },
    failed,
    phase: { kind: "start", label: "start" },
  },
  StopContainer: { kind: "action" },
  RemoveContainer: { kind: "action" },
  /** Every kill has a reason. */
  Killing: { kind: "decision", event: { type: "Normal", words: "{Message}: {cause}" } },
  PostStartHook: {
    kind: "action",
    failed: { type: "Warning", reason: "FailedPostStartHook", words: "PostStartHook failed: {message}" },
    phase: { kind: "hook", label: "postStart hook" },
  },
  FailedPostStartHook: { kind: "observation" },
  PreStopHook: { kind: "action" },
  FailedPreStopHook: { kind: "observation", event: warning },
  PreStopHookOverdue: { kind: "observation" },
  LifecycleHTTPFallback: {
    kind: "observation",
    event: { type: "Warning", words: "{message}" },
    counter: {
      name: "kubelet_lifecycle_handler_http_fallbacks_total",
      help: "HTTPS lifecycle hooks that fell back to HTTP",
    },
  },
  UpdateContainerResources: { kind: "action" },
  UpdatePodCgroup: { kind: "action" },
  RemoveCgroup: { kind: "action" },
  RemoveLogLink: { kind: "action" },
  RemovePodLogs: { kind: "action", why: "shadow" },
  RotateLog: { kind: "action" },
  ReopenLog: { kind: "action" },
  UserNamespaceAssigned: { kind: "note" },
  ContainerConfigError: { kind: "observation", event: failed, startError: "CreateContainerConfigError" },
  SandboxConfigError: { kind: "observation", event: sandboxFailed },
  FailedPodSandBoxStatus: {
    kind: "observation",
    event: { type: "Warning", words: "Unable to get pod sandbox status: {message}" },
  },
  FailedMakePodDataDirectories: {
    kind: "observation",
    event: { type: "Warning", reason: "Failed", words: "error making pod data directories: {message}" },
  },
  FailedCreatePodContainer: {
    kind: "observation",
    event: { type: "Warning", words: "unable to ensure pod container exists: {message}" },
  },
  NetworkNotReady: { kind: "observation", event: { type: "Warning", words: "{message}" } },
  DNSConfigForming: { kind: "note", event: warning },
  MissingClusterDNS: {
    kind: "note",
    event: { type: "Warning", words: "{message}" },
    nodeEvent: { type: "Warning", words: "{nodeMessage}" },
  },
  ContainerGCFailed: { kind: "note", event: warning },
  NodeAllocatableEnforced: { kind: "note", event: normal },
  FailedNodeAllocatableEnforcement: { kind: "note", event: warning },
} as const satisfies Terms;

export const runtimeFacts = {
  ContainerDefinitionChanged: {},
  ContainerExited: {},
  ContainerGC: { why: "tidying" },
  ContainerMissing: { why: "begin" },
  ContainerNeverStarted: {},
  ContainerUnknown: {},
  InitContainerFailed: {},
  LastContainerUnhealthy: {},
  LogMissing: {},
  LogSize: {},
  MatchingSandbox: {},
  NetworkReady: {},
  ResourcesDiffer: {},
  RestartAllContainers: {},
  RestartPolicy: {},
  RestartPolicyRule: {},
  SandboxGC: {},
  SandboxMissing: { why: "begin" },
  SandboxNetworkChanged: {},
  SandboxNotReady: {},
  SandboxSurplus: {},
  SandboxUsersDiffer: {},
  SandboxWithoutAddress: {},
  Sidecar: {},
} as const satisfies Facts;
