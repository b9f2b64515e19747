/**
 * Removed feature gates, with the last version of Kubernetes that certainly had them (kubernetes.io, "Feature Gates
 * (removed)", and the gates of 1.32).
 */
const lastKnown: Readonly<Record<string, string>> = {
  "1.16": `CSIPersistentVolume CustomPodDNS ExperimentalCriticalPodAnnotation GCERegionalPersistentDisk HugePages
    KubeletPluginsWatcher PersistentLocalVolumes PodReadinessGates`,
  "1.17": "EnableAggregatedDiscoveryTimeout MountContainers RequestManagement",
  "1.18": `CustomResourceDefaulting CustomResourcePublishOpenAPI CustomResourceSubresources CustomResourceValidation
    CustomResourceWebhookConversion PodPriority ResourceQuotaScopeSelectors ScheduleDaemonSetPods
    TaintNodesByCondition`,
  "1.19": "DynamicAuditing PodShareProcessNamespace ResourceLimitsPriorityFunction",
  "1.20": `HyperVContainer ServiceLoadBalancerFinalizer SupportIPVSProxyMode TaintBasedEvictions WindowsGMSA
    WindowsRunAsUserName`,
  "1.21": `AttachVolumeLimit BlockVolume CSIBlockVolume CSIDriverRegistry CSIMigrationAWSComplete
    CSIMigrationAzureDiskComplete CSIMigrationAzureFileComplete CSIMigrationGCEComplete CSIMigrationOpenStackComplete
    EvenPodsSpread RotateKubeletClientCertificate TokenRequest TokenRequestProjection VolumePVCDataSource`,
  "1.22": `BalanceAttachedNodeVolumes CRIContainerLogRotation CSIMigrationvSphereComplete CSINodeInfo
    ExternalPolicyForExternalIP LegacyNodeRoleBehavior NodeDisruptionExclusion RootCAConfigMap RunAsGroup SCTPSupport
    ServiceAppProtocol ServiceNodeExclusion ServiceTopology Sysctls VolumeSnapshotDataSource`,
  "1.23": `BoundServiceAccountTokenVolume CronJobControllerV2 EnableEquivalenceClassCache NamespaceDefaultLabelName
    NodeLease ServiceAccountIssuerDiscovery StartupProbe SupportNodePidsLimit SupportPodPidsLimit`,
  "1.24": `CSIServiceAccountToken EndpointSlice EndpointSliceNodeName EndpointSliceProxying GenericEphemeralVolume
    HugePageStorageMediumSize IPv6DualStack ImmutableEphemeralVolumes IngressClassNamespacedParams RuntimeClass
    SetHostnameAsFQDN StorageObjectInUseProtection StreamingProxyRedirects TTLAfterFinished ValidateProxyRedirects
    VolumeSubpath VolumeSubpathEnvExpansion WarningHeaders WindowsEndpointSliceProxying`,
  "1.25": `AllowInsecureBackendProxy CSIMigrationOpenStack CSIVolumeFSGroupPolicy CSRDuration
    ConfigurableFSGroupPolicy DefaultPodTopologySpread DynamicKubeletConfig IndexedJob NonPreemptingPriority
    PodAffinityNamespaceSelector PodDisruptionBudget PodOverhead PreferNominatedNode SelectorIndex
    ServiceLBNodePortControl ServiceLoadBalancerClass SuspendJob`,
  "1.26": `CSIInlineVolume CSIMigration CSIMigrationAWS CSIMigrationAzureDisk ControllerManagerLeaderMigration
    DaemonSetUpdateSurge EphemeralContainers ExpandCSIVolumes ExpandInUsePersistentVolumes ExpandPersistentVolumes
    IdentifyPodOS LocalStorageCapacityIsolation NetworkPolicyEndPort StatefulSetMinReadySeconds`,
  "1.27": `AdvancedAuditing CSIMigrationGCE CSIStorageCapacity DelegateFSGroupToCSIDriver DevicePlugins
    DisableAcceleratorUsageMetrics DryRun EndpointSliceTerminatingCondition KubeletCredentialProviders
    MixedProtocolLBService NetworkPolicyStatus PodHasNetworkCondition PodSecurity ServiceIPStaticSubrange
    ServiceInternalTrafficPolicy UserNamespacesStatelessPodsSupport WindowsHostProcessContainers`,
  "1.28": `CSIMigrationvSphere CronJobTimeZone DownwardAPIHugePages GRPCContainerProbe
    JobMutableNodeSchedulingDirectives JobTrackingWithFinalizers LegacyServiceAccountTokenNoAutoGeneration
    MultiCIDRRangeAllocator OpenAPIV3 ProbeTerminationGracePeriod RetroactiveDefaultStorageClass SeccompDefault
    TopologyManager`,
  "1.29": "KubeletPodResources KubeletPodResourcesGetAllocatable",
  "1.30": "CSINodeExpandSecret ConsistentHTTPGetHandlers DefaultHostNetworkHostPortsInPodTemplates",
  "1.32": `APIListChunking AdmissionWebhookMatchConditions AggregatedDiscoveryEndpoint AppArmor AppArmorFields CPUManager
    CronJobsScheduledAnnotation DevicePluginCDIDevices DisableCloudProviders DisableKubeletCloudCredentialProviders
    EfficientWatchResumption ElasticIndexedJob HPAContainerMetrics JobPodFailurePolicy
    KubeProxyDrainingTerminatingNodes LoadBalancerIPMode MemoryManager PDBUnhealthyPodEvictionPolicy
    PersistentVolumeLastPhaseTransitionTime PodDisruptionConditions PodHostIPs PodIndexLabel RemainingItemCount
    ServiceTrafficDistribution SizeMemoryBackedVolumes StatefulSetAutoDeletePVC StatefulSetStartOrdinal
    StrictCostEnforcementForVAP StrictCostEnforcementForWebhooks StructuredAuthorizationConfiguration
    TopologyAwareHints VolumeCapacityPriority WatchBookmark ZeroLimitedNominalConcurrencyShares`,
  "1.35":
    "CSIMigrationPortworx HonorPVReclaimPolicy InTreePluginPortworxUnregister WatchFromStorageWithoutResourceVersion",
};

/** Renamed gates. */
const renamed: Readonly<Record<string, string>> = {
  CPUCFSQuotaPeriod: "CustomCPUCFSQuotaPeriod",
  PodHasNetworkCondition: "PodReadyToStartContainersCondition",
  RuntimeClassInImageCriAPI: "RuntimeClassInImageCriApi",
  UserNamespacesStatelessPodsSupport: "UserNamespacesSupport",
};

const removed: ReadonlyMap<string, string> = new Map(
  Object.entries(lastKnown).flatMap(([version, names]) => names.split(/\s+/u).map((name) => [name, version] as const)),
);

/** For a removed gate: `removed after Kubernetes 1.28: delete it`. */
export function removedGate(name: string): string | undefined {
  const version = removed.get(name);
  const now = Object.hasOwn(renamed, name) ? renamed[name] : undefined;
  if (version === undefined) return now === undefined ? undefined : `renamed to ${now}`;
  return `removed after Kubernetes ${version}: ${now === undefined ? "delete it" : `renamed to ${now}`}`;
}

/** For tests. */
export function removedGates(): readonly string[] {
  return [...removed.keys()];
}
