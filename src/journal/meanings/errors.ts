import type { Meaning } from "./meaning.ts";

/** Waiting reasons in the API status of containers, except those that are names of the journal. */
const waitingReasons = {
  ContainerCreating: { means: "The container is being created: volumes, image, sandbox." },
  PodInitializing: { means: "The container waits for the pod's init containers." },
  CrashLoopBackOff: {
    means: "The container keeps exiting; its restart waits for the back-off (10 s, doubled up to 5 min).",
    remedy: "See 'podwright logs --previous POD' for the reason of the exits.",
  },
  CreateContainerConfigError: {
    means: "The container cannot be created from the pod's spec, e.g. a ConfigMap or Secret is missing.",
    remedy: "Create the object that the message names, or correct the pod.",
  },
  CreateContainerError: {
    means: "The container runtime could not create the container.",
    remedy: "See the runtime's message; often a mount, a device or a security profile.",
  },
  RunContainerError: {
    means: "The container runtime could not start the container.",
    remedy: "Check the command, its path in the image and its permissions.",
  },
  PostStartHookError: { means: "The postStart hook failed, so the container was stopped.", remedy: "See the message." },
  KillContainerError: {
    means: "The container could not be stopped for its restart; it is retried.",
    remedy: "See the runtime's log.",
  },
  CreatePodSandboxError: {
    means: "The pod's sandbox could not be created; it is retried.",
    remedy: "Check the network plugin and the runtime's log.",
  },
  ErrImagePull: {
    means: "The last pull of the image failed.",
    remedy: "Check the image name, the registry and the pull secrets.",
  },
  RegistryUnavailable: {
    means: "The registry of the image does not answer.",
    remedy: "Check the registry and the node's route to it.",
  },
  SignatureValidationFailed: {
    means: "The runtime's signature policy rejects the image.",
    remedy: "Sign the image, or change the runtime's policy.",
  },
} as const satisfies Readonly<Record<string, Meaning>>;

/** Terminated reasons in the API status of containers, from the runtime or podwright. */
const terminatedReasons = {
  Completed: { means: "The container exited with code 0." },
  Error: { means: "The container exited with a code other than 0.", remedy: "See 'podwright logs --previous POD'." },
  OOMKilled: {
    means: "The kernel killed the container because it exceeded its memory limit.",
    remedy: "Raise the container's memory limit, or find out why it uses more.",
  },
  StartError: {
    means: "The container's process could not be started. As an error: the start of a container failed.",
    remedy: "Check the command, its path in the image and its permissions.",
  },
  ContainerStatusUnknown: {
    means: "The container disappeared before its exit code was seen.",
    remedy: "Find out what else removes containers on this node.",
  },
} as const satisfies Readonly<Record<string, Meaning>>;

const check = "Check the value that the message names.";
const seeMessage = "See the message.";

/** Error classes, whose names precede messages in logs and in stacks (PODWRIGHT_DEBUG=1). */
const errorClasses = {
  PodwrightError: {
    means: "An error message with a remedy. The exit code is 2 for bad input and 3 for a problem of the machine.",
    remedy: "Follow the remedy after the message.",
  },
  InvariantError: {
    means: "An internal invariant was violated.",
    remedy: "Report it as a podwright bug, with its log and journal.",
  },
  DeadlineError: {
    means: "A wait exceeded its deadline; the message names the wait.",
    remedy: "Check what is waited for: the runtime, the API server or the disk.",
  },
  CriError: {
    means:
      "A call to the container runtime failed, with its gRPC code. After Canceled, DeadlineExceeded or Unavailable the runtime may have completed it.",
    remedy: "See the runtime's log.",
  },
  RpcError: {
    means: "A gRPC call failed, with its code.",
    remedy: "Check the service at the endpoint that the message names.",
  },
  FileError: {
    means: "A file operation failed, with its errno.",
    remedy: "Check the disk: free space, permissions, errors.",
  },
  ApiError: {
    means: "The API server, or the kubelet API, rejected a request, with its HTTP status.",
    remedy: "Check the node's permissions and the object that the message names.",
  },
  ApiDecodeError: {
    means: "The API server sent something that podwright cannot decode.",
    remedy: "Check the API server's version, and proxies on the way.",
  },
  KubeConnectionError: {
    means: "The API server cannot be reached; the message names the cause.",
    remedy: "Check the kubeconfig, the network and the certificates.",
  },
  RefusedStreamError: { means: "The API server refused a request before processing it; it is repeated." },
  ManifestError: {
    means: "A manifest is invalid; the message has file, line and field.",
    remedy: "Correct the field.",
  },
  YamlError: { means: "A file is not valid YAML.", remedy: "Correct the line that the message names." },
  ScalarError: { means: "A value in a YAML file is invalid.", remedy: "Correct the line that the message names." },
  FlagValueError: { means: "The value of a kubelet flag is invalid.", remedy: check },
  QuantityError: { means: "A value is not a quantity such as 2, 500m or 64Mi.", remedy: check },
  ImageError: { means: "An image is not available; its reason is the container's waiting reason." },
  ImageReferenceError: { means: "An image reference is invalid.", remedy: "Correct spec.containers[].image." },
  DockerConfigError: { means: "A pull secret or credentials file is invalid.", remedy: "Recreate the Secret or file." },
  ContainerConfigError: {
    means: "A container or sandbox cannot be created from the pod's spec.",
    remedy: "Create the object that the message names, or correct the pod.",
  },
  NotKnownYetError: { means: "An object is not known yet, because the API server has not answered; it is retried." },
  HookError: { means: "A lifecycle hook failed or cannot be run.", remedy: "Run the hook by hand in the container." },
  ResizeError: {
    means: "A resize cannot be applied now; it is retried.",
    remedy: "Request no less memory than is in use.",
  },
  EditConflictError: {
    means: "Two resource managers of the node set the same value of a container.",
    remedy: "Turn one of them off in the configuration.",
  },
  CsiCallError: { means: "A call of a CSI driver failed.", remedy: "See the driver's own log on this node." },
  DriverMissingError: {
    means: "A volume's CSI driver is not registered on this node; the volume waits for it.",
    remedy: "Check that the driver's pod runs on this node, and its registrar.",
  },
  RefusedError: {
    means:
      "A CSI driver's topology conflicts with a label of the Node, or the API server refuses the driver's labels or its entry in the CSINode; the driver is not registered.",
    remedy: "Correct the label or the node's rights, or the driver's configuration.",
  },
  RegistrationError: { means: "A plugin of the node cannot be registered; it is retried.", remedy: seeMessage },
  NotifyError: { means: "A plugin did not accept the result of its registration; the registration is retried." },
  AttachLimitError: {
    means: "The node has reached a driver's volume limit; the pod is rejected.",
    remedy: "Run the pod on another node, or remove pods with volumes of that driver.",
  },
  AwaitedError: {
    means: "A volume waits for something that is missing, e.g. its driver; it is retried.",
    remedy: seeMessage,
  },
  ClaimError: {
    means: "A claim cannot be used as the pod requests, or not yet; it is retried.",
    remedy: seeMessage,
  },
  StorageLookupError: { means: "A claim or its volume cannot be read from the API server; it is retried." },
  SELinuxLabelError: {
    means: "A volume cannot be mounted with one SELinux label for all containers of the pod; it is retried.",
    remedy: "Give the containers that mount it the same seLinuxOptions.",
  },
  VolumeOperationError: { means: "A step of a volume's set-up failed; it is retried.", remedy: seeMessage },
  VolumeError: {
    means: "A volume of the pod cannot be set up; it is retried.",
    remedy: "Create the object that the message names, or correct the volume.",
  },
  NotNowError: { means: "A volume cannot be updated now, because the API server has not answered; it is retried." },
  ProbeTargetError: {
    means: "A probe or HTTP hook reached no valid answer; it counts as a failure.",
    remedy: seeMessage,
  },
  ProbeTimeoutError: { means: "A probe exceeded its timeoutSeconds; it counts as a failure.", remedy: seeMessage },
  RequestRefusedError: {
    means: "The node's certificate request was denied or failed.",
    remedy: "Delete it (kubectl delete csr NAME) to request again.",
  },
  HeldError: {
    means: "Another process uses the runtime or the state directory.",
    remedy: "Stop the process that the message names, or use another --state-dir or --runtime-endpoint.",
  },
  RecordingError: { means: "A recording for replay is invalid.", remedy: "Use a file written by --record." },
  SocketError: { means: "The connection to the engine's socket failed.", remedy: "See 'podwright doctor'." },
  UpgradeRefusedError: { means: "The engine refused to start a stream, e.g. of exec.", remedy: seeMessage },
  HttpSyntaxError: {
    means: "A server did not respond with valid HTTP.",
    remedy: "Check the probe's port and scheme.",
  },
  StreamResetError: { means: "A server reset the HTTP/2 request.", remedy: "See the server's log." },
  ConnectionLostError: {
    means: "The connection to the runtime or a plugin was lost, or could not be opened; it is opened again.",
    remedy: "See the log of the runtime or the plugin.",
  },
  WebSocketError: {
    means: "A client of exec, attach or port-forward broke the WebSocket protocol; its connection is closed.",
  },
  SpdyError: { means: "A client of exec, attach or port-forward broke the SPDY protocol; its connection is closed." },
  LogQueryError: { means: "A query of node logs is invalid.", remedy: check },
  LogOptionsError: { means: "The options of a log request are invalid.", remedy: check },
} as const satisfies Readonly<Record<string, Meaning>>;

export const errorMeanings = { waitingReasons, terminatedReasons, errorClasses } as const;
