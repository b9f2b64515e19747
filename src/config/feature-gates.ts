/** How far a feature has come; `AllAlpha` and `AllBeta` set every gate of their stage. */
type Stage = "alpha" | "beta" | "ga" | "deprecated";

interface GateGroup {
  readonly stage: Stage;
  /** Whether the feature is on unless it is turned off. */
  readonly enabled: boolean;
  /** A locked gate can be named but not changed. */
  readonly locked: boolean;
  readonly names: string;
}

/**
 * The feature gates that the kubelet of Kubernetes 1.36 takes, those of its libraries included (pkg/features,
 * component-base, client-go).
 */
const groups: readonly GateGroup[] = [
  {
    stage: "ga",
    enabled: true,
    locked: true,
    names: `
      APIServerTracing AnonymousAuthConfigurableEndpoints AnyVolumeDataSource AuthorizeNodeWithSelectors
      AuthorizeWithSelectors BtreeWatchCache CPUManagerPolicyOptions CRDValidationRatcheting
      CSIServiceAccountTokenSecrets ConsistentListFromCache DRAAdminAccess DeclarativeValidation
      DisableAllocatorDualWrite DynamicResourceAllocation ExecProbeTimeout ExternalServiceAccountTokenSigner
      ImageMaximumGCAge ImageVolume InOrderInformers InPlacePodVerticalScaling JobBackoffLimitPerIndex JobManagedBy
      JobPodReplacementPolicy JobSuccessPolicy KubeletCgroupDriverFromCRI KubeletFineGrainedAuthz KubeletPSI
      KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletTracing LogarithmicScaleDown
      MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator MutableCSINodeAllocatableCount NFTablesProxyMode
      NodeInclusionPolicyInPodTopologySpread NodeLogQuery NodeSwap OrderedNamespaceDeletion PodLifecycleSleepAction
      PodLifecycleSleepActionAllowZero PodObservedGenerationTracking PodSchedulingReadiness
      PreferSameTrafficDistribution ProcMountType RecoverVolumeExpansionFailure RecursiveReadOnlyMounts
      RelaxedDNSSearchValidation RelaxedEnvironmentVariableValidation ResilientWatchCacheInitialization
      SELinuxChangePolicy SELinuxMountReadWriteOncePod SchedulerQueueingHints SeparateTaintEvictionController
      ServiceAccountTokenJTI ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation
      ServiceAccountTokenPodNodeInfo StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf
      StructuredAuthenticationConfiguration SupplementalGroupsPolicy SystemdWatchdog TopologyManagerPolicyOptions
      UserNamespacesSupport VolumeAttributesClass WinDSR WinOverlay`,
  },
  {
    stage: "ga",
    enabled: true,
    locked: false,
    names: `
      AllowServiceExternalIPs CustomCPUCFSQuotaPeriod CustomResourceFieldSelectors DRAPrioritizedList
      InformerResourceVersion MutatingAdmissionPolicy RetryGenerateName SidecarContainers`,
  },
  {
    stage: "beta",
    enabled: true,
    locked: false,
    names: `
      APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth AtomicFIFO
      AuthorizePodWebsocketUpgradeCreatePermission CPUManagerPolicyBetaOptions CRDObservedGenerationTracking
      ClearingNominatedNodeNameAfterBinding ClientsAllowCARotation ClientsAllowTLSCacheGC ComponentFlagz
      ComponentStatusz ConstrainedImpersonation ContainerCheckpoint ContainerRestartRules ContextualLogging
      DRAConsumableCapacity DRADeviceBindingConditions DRADeviceTaints DRAExtendedResource DRAPartitionableDevices
      DRAResourceClaimDeviceStatus DRAResourceClaimGranularStatusAuthorization DRASchedulerFilterTimeout
      DeclarativeValidationBeta DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency EnvFiles
      ExtendWebSocketsToKubelet GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority HPAConfigurableTolerance
      HostnameOverride InOrderInformersBatchProcess InPlacePodLevelResourcesVerticalScaling
      InPlacePodVerticalScalingInitContainers KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages
      KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot LoggingBetaOptions
      MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge
      MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs NodeDeclaredFeatures
      NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching PLEGOnDemandRelist PodDeletionCost
      PodLevelResources PodReadyToStartContainersCondition PodTopologyLabelsAdmission PortForwardWebsockets
      PreventStaticPodAPIReferences RelaxedServiceNameValidation ReloadKubeletClientCAFile
      ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResourceHealthStatus ResourceHealthStatusMessage
      RestartAllContainersOnContainerExits RotateKubeletServerCertificate SchedulerAsyncPreemption
      SchedulerPopFromBackoffQ ServiceAccountNodeAudienceRestriction SizeBasedListCostEstimate
      StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet
      StaleControllerConsistencyStatefulSet StatefulSetSemanticRevisionComparison StorageVersionHash
      StrictIPCIDRValidation StructuredAuthenticationConfigurationEgressSelector
      StructuredAuthenticationConfigurationJWKSMetrics TokenRequestServiceAccountUIDValidation
      TopologyManagerPolicyBetaOptions TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation
      UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO WatchCacheInitializationPostStartHook WatchList
      WatchListClient WindowsGracefulNodeShutdown`,
  },
  {
    stage: "beta",
    enabled: false,
    locked: false,
    names: `
      ClusterTrustBundle ClusterTrustBundleProjection ConcurrentWatchObjectDecode CoordinatedLeaderElection
      DRADeviceTaintRules LocalStorageCapacityIsolationFSQuotaMonitoring MaxUnavailableStatefulSet
      PodCertificateRequest SELinuxMount SchedulerAsyncAPICalls StorageVersionMigrator`,
  },
  {
    stage: "alpha",
    enabled: false,
    locked: false,
    names: `
      APIServingWithRoutine AllowUnsafeMalformedObjectDeletion CBORServingAndStorage CPUManagerPolicyAlphaOptions
      CRIListStreaming CSIVolumeHealth ClientsAllowCBOR ClientsPreferCBOR
      CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook ContainerStopSignals
      CrossNamespaceVolumeDataSource DRAListTypeAttributes DRANodeAllocatableResources DRAResourcePoolStatus
      DRAWorkloadResourceClaims EventedPLEG GangScheduling GenericWorkload HPAScaleToZero ImageVolumeWithDigest
      InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory KubeletInUserNamespace
      LoggingAlphaOptions ManifestBasedAdmissionControlConfig MemoryQoS MutablePVNodeAffinity NativeHistograms
      PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI PodLevelResourceManagers
      PodLogsQuerySplitStreams PodsAPI QOSReserved ReduceDefaultCrashLoopBackOffDecay RuntimeClassInImageCriApi
      ShardedListAndWatch StorageCapacityScoring StorageVersionAPI TaintTolerationComparisonOperators
      TopologyAwareWorkloadScheduling TopologyManagerPolicyAlphaOptions UserNamespacesHostNetworkSupport
      VolumeLimitScaling WindowsCPUAndMemoryAffinity WorkloadAwarePreemption WorkloadWithJob`,
  },
  {
    stage: "deprecated",
    enabled: true,
    locked: true,
    names: `
      AggregatedDiscoveryRemoveBetaType DisableNodeKubeProxyVersion`,
  },
  {
    stage: "deprecated",
    enabled: true,
    locked: false,
    names: `
      DisableCPUQuotaWithExclusiveCPUs KubeletPodResourcesListUseActivePods SeparateCacheWatchRPC
      ServiceCIDRStatusFieldWiping StorageNamespaceIndex`,
  },
  {
    stage: "deprecated",
    enabled: false,
    locked: true,
    names: `
      AllowOverwriteTerminationGracePeriodSeconds GitRepoVolumeDriver`,
  },
  {
    stage: "deprecated",
    enabled: false,
    locked: false,
    names: `
      AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests ChangeContainerStatusOnKubeletRestart
      DeclarativeValidationTakeover KMSv1 KubeletRegistrationGetOnExistsOnly WindowsHostNetwork`,
  },
];

interface Gate {
  readonly stage: Stage;
  readonly enabled: boolean;
  readonly locked: boolean;
}

const gates: ReadonlyMap<string, Gate> = new Map(
  groups.flatMap(({ names, ...gate }) =>
    names
      .trim()
      .split(/\s+/u)
      .map((name) => [name, gate] as const),
  ),
);

/** Set every alpha or beta gate that is not named itself. */
const wholeStages: Readonly<Record<string, Stage>> = { AllAlpha: "alpha", AllBeta: "beta" };

/** The gates that this version of podwright looks at; every other one has no effect here. */
const honoured = new Set([
  "AllowDNSOnlyNodeCSR",
  "ComponentFlagz",
  "ComponentStatusz",
  "ContainerCheckpoint",
  "CustomCPUCFSQuotaPeriod",
  "KubeletCrashLoopBackOffMax",
  "KubeletEnsureSecretPulledImages",
  "KubeletPodResourcesListUseActivePods",
  "PodsAPI",
  "RotateKubeletServerCertificate",
]);

/** Feature gates as a configuration sets them. */
export interface FeatureGates {
  /** Whether the feature is on; false for an unknown one. */
  enabled(name: string): boolean;
  /** What is wrong with the settings, in upstream's words. */
  readonly errors: readonly string[];
  /** Settings that change a gate to which podwright pays no attention. */
  readonly withoutEffect: readonly string[];
}

/** Judges the settings of `featureGates` and `--feature-gates`. Pure. */
export function featureGates(settings: Readonly<Record<string, boolean>> = {}): FeatureGates {
  const errors: string[] = [];
  const withoutEffect: string[] = [];
  for (const [name, value] of Object.entries(settings)) {
    const gate = gates.get(name);
    if (name in wholeStages) {
      if (value) withoutEffect.push(`${name}=${value}`);
    } else if (gate === undefined) {
      errors.push(`unrecognized feature gate: ${name}`);
    } else if (gate.locked && value !== gate.enabled) {
      errors.push(`cannot set feature gate ${name} to ${value}, feature is locked to ${gate.enabled}`);
    } else if (value !== gate.enabled && !honoured.has(name)) {
      withoutEffect.push(`${name}=${value}`);
    }
  }
  return {
    errors,
    withoutEffect,
    enabled(name) {
      const gate = gates.get(name);
      const own = settings[name];
      if (gate === undefined || gate.locked) return gate?.enabled ?? false;
      const ofStage = Object.entries(wholeStages).find(([, stage]) => stage === gate.stage);
      return own ?? (ofStage && settings[ofStage[0]]) ?? gate.enabled;
    },
  };
}

/** Every known gate, for documentation and tests. */
export function knownFeatureGates(): ReadonlyMap<string, Gate> {
  return gates;
}
