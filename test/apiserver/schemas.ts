import {
  all,
  kind,
  list,
  localReference,
  map,
  object,
  objectReference,
  quantities,
  type Schema,
  stringMap,
} from "./schema.ts";
import {
  containerMembers,
  containerStatus,
  profile,
  resources,
  seLinux,
  volume,
  windows,
} from "./schemas-container.ts";

const toleration = object(all("string", "key operator value effect"), all("integer", "tolerationSeconds"));
const podSecurityContext = object(
  all("integer", "runAsUser runAsGroup fsGroup"),
  all("boolean", "runAsNonRoot"),
  all("string", "supplementalGroupsPolicy fsGroupChangePolicy seLinuxChangePolicy"),
  all(profile, "seccompProfile appArmorProfile"),
  {
    seLinuxOptions: seLinux,
    windowsOptions: windows,
    supplementalGroups: list("integer"),
    sysctls: list(object(all("string", "name value"))),
  },
);
const podSpec = object(
  all(
    "string",
    "restartPolicy dnsPolicy nodeName serviceAccountName serviceAccount hostname hostnameOverride subdomain",
  ),
  all("string", "schedulerName priorityClassName preemptionPolicy runtimeClassName"),
  all("integer", "terminationGracePeriodSeconds activeDeadlineSeconds priority"),
  all("boolean", "automountServiceAccountToken hostNetwork hostPID hostIPC hostUsers shareProcessNamespace"),
  all("boolean", "setHostnameAsFQDN enableServiceLinks"),
  // For schedulers and resource drivers.
  all("any", "affinity topologySpreadConstraints schedulingGates schedulingGroup workloadRef resourceClaims"),
  all(list(object(containerMembers)), "containers initContainers"),
  {
    ephemeralContainers: list(object(containerMembers, all("string", "targetContainerName"))),
    volumes: list(volume),
    nodeSelector: stringMap,
    securityContext: podSecurityContext,
    imagePullSecrets: list(localReference),
    tolerations: list(toleration),
    hostAliases: list(object(all("string", "ip"), { hostnames: list("string") })),
    dnsConfig: object(all(list("string"), "nameservers searches"), {
      options: list(object(all("string", "name value"))),
    }),
    readinessGates: list(object(all("string", "conditionType"))),
    overhead: quantities,
    os: object(all("string", "name")),
    resources,
  },
);
const podCondition = object(
  all("string", "type status reason message"),
  all("integer", "observedGeneration"),
  all("time", "lastProbeTime lastTransitionTime"),
);
const podStatus = object(
  all("string", "phase message reason nominatedNodeName hostIP podIP qosClass resize"),
  all("integer", "observedGeneration"),
  all("time", "startTime"),
  all(list(object(all("string", "ip"))), "hostIPs podIPs"),
  all(list(containerStatus), "initContainerStatuses containerStatuses ephemeralContainerStatuses"),
  all("any", "extendedResourceClaimStatus nodeAllocatableResourceClaimStatuses"),
  {
    conditions: list(podCondition),
    resourceClaimStatuses: list(object(all("string", "name resourceClaimName"))),
    allocatedResources: quantities,
    resources,
  },
);

const nodeSpec = object(all("string", "podCIDR providerID externalID"), all("boolean", "unschedulable"), {
  podCIDRs: list("string"),
  taints: list(object(all("string", "key value effect"), all("time", "timeAdded"))),
  configSource: "any",
});
const nodeCondition = object(
  all("string", "type status reason message"),
  all("time", "lastHeartbeatTime lastTransitionTime"),
);
const nodeInfo = object(
  all(
    "string",
    "machineID systemUUID bootID kernelVersion osImage containerRuntimeVersion kubeletVersion kubeProxyVersion",
  ),
  all("string", "operatingSystem architecture"),
  { swap: object(all("integer", "capacity")) },
);
const nodeStatus = object(all(quantities, "capacity allocatable"), all("string", "phase"), {
  conditions: list(nodeCondition),
  addresses: list(object(all("string", "type address"))),
  daemonEndpoints: object({ kubeletEndpoint: object(all("integer", "Port")) }),
  nodeInfo,
  images: list(object({ names: list("string") }, all("integer", "sizeBytes"))),
  volumesInUse: list("string"),
  volumesAttached: list(object(all("string", "name devicePath"))),
  config: "any",
  runtimeHandlers: list(
    object(all("string", "name"), { features: object(all("boolean", "recursiveReadOnlyMounts userNamespaces")) }),
  ),
  features: object(all("boolean", "supplementalGroupsPolicy")),
  declaredFeatures: list("string"),
});

const event = kind(
  all("string", "reason message type action reportingComponent reportingInstance"),
  all(objectReference, "involvedObject related"),
  all("time", "firstTimestamp lastTimestamp"),
  all("integer", "count"),
  {
    source: object(all("string", "component host")),
    eventTime: "microtime",
    series: object(all("integer", "count"), all("microtime", "lastObservedTime")),
  },
);
const leaseSpec = object(
  all("string", "holderIdentity strategy preferredHolder"),
  all("integer", "leaseDurationSeconds leaseTransitions"),
  all("microtime", "acquireTime renewTime"),
);
const requestCondition = object(
  all("string", "type status reason message"),
  all("time", "lastUpdateTime lastTransitionTime"),
);
const certificateRequest = kind({
  spec: object(all("string", "signerName username uid"), all("integer", "expirationSeconds"), all("bytes", "request"), {
    ...all(list("string"), "usages groups"),
    extra: map(list("string")),
  }),
  status: object(all("bytes", "certificate"), { conditions: list(requestCondition) }),
});
const driver = object(all("string", "name nodeID"), {
  topologyKeys: list("string"),
  allocatable: object(all("integer", "count")),
});

/**
 * Stored forms by kind: everything that kubelets write and that pods use (k8s.io/api v1.36). Other kinds are not
 * checked.
 */
export const schemas: Readonly<Record<string, Schema>> = {
  Pod: kind({ spec: podSpec, status: podStatus }),
  Node: kind({ spec: nodeSpec, status: nodeStatus }),
  Event: event,
  Lease: kind({ spec: leaseSpec }),
  CertificateSigningRequest: certificateRequest,
  CSINode: kind({ spec: object({ drivers: list(driver) }) }),
  ConfigMap: kind(all("boolean", "immutable"), { data: stringMap, binaryData: map("bytes") }),
  Secret: kind(all("boolean", "immutable"), all("string", "type"), { data: map("bytes"), stringData: stringMap }),
  ServiceAccount: kind(all("boolean", "automountServiceAccountToken"), {
    secrets: list(objectReference),
    imagePullSecrets: list(localReference),
  }),
};
