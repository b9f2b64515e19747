import { didYouMean } from "../base/did-you-mean.ts";
import { removedGate } from "./removed-gates.ts";

/** A feature's maturity; `AllAlpha` and `AllBeta` set every gate of their stage. */
type Stage = "alpha" | "beta" | "ga" | "deprecated";

interface GateGroup {
  readonly stage: Stage;
  /** The default. */
  readonly enabled: boolean;
  /** Locked gates may only be set to their default. */
  readonly locked: boolean;
  readonly names: string;
}

/**
 * The feature gates of the kubelet of Kubernetes 1.36 and of its libraries (pkg/features, component-base, client-go).
 */
const groups: readonly GateGroup[] = [
  {
    stage: "ga",
    enabled: true,
    locked: true,
    names: `
      APIServerTracing AnonymousAuthConfigurableEndpoints AnyVolumeDataSource AuthorizeNodeWithSelectors
      AuthorizeWithSelectors BtreeWatchCache CPUManagerPolicyOptions CRDValidationRatcheting
      CSIServiceAccountTokenSecrets ConsistentListFromCache CustomResourceFieldSelectors DRAAdminAccess
      DeclarativeValidation DisableAllocatorDualWrite DynamicResourceAllocation ExecProbeTimeout
      ExternalServiceAccountTokenSigner ImageMaximumGCAge ImageVolume InOrderInformers InPlacePodVerticalScaling
      JobBackoffLimitPerIndex JobManagedBy JobPodReplacementPolicy JobSuccessPolicy KubeletCgroupDriverFromCRI
      KubeletFineGrainedAuthz KubeletPSI KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletTracing
      LogarithmicScaleDown MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator MutableCSINodeAllocatableCount
      NFTablesProxyMode NodeInclusionPolicyInPodTopologySpread NodeLogQuery NodeSwap OrderedNamespaceDeletion
      PodLifecycleSleepAction PodLifecycleSleepActionAllowZero PodObservedGenerationTracking PodSchedulingReadiness
      PreferSameTrafficDistribution ProcMountType RecoverVolumeExpansionFailure RecursiveReadOnlyMounts
      RelaxedDNSSearchValidation RelaxedEnvironmentVariableValidation ResilientWatchCacheInitialization
      RetryGenerateName SELinuxChangePolicy SELinuxMountReadWriteOncePod SchedulerQueueingHints
      SeparateTaintEvictionController ServiceAccountTokenJTI ServiceAccountTokenNodeBinding
      ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo SidecarContainers
      StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf StructuredAuthenticationConfiguration
      SupplementalGroupsPolicy SystemdWatchdog TopologyManagerPolicyOptions UserNamespacesSupport
      VolumeAttributesClass WinDSR WinOverlay`,
  },
  {
    stage: "ga",
    enabled: true,
    locked: false,
    names: `
      AllowServiceExternalIPs CustomCPUCFSQuotaPeriod DRAPrioritizedList InformerResourceVersion
      MutatingAdmissionPolicy`,
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
      DisableCPUQuotaWithExclusiveCPUs KubeletPodResourcesListUseActivePods ServiceCIDRStatusFieldWiping
      StorageNamespaceIndex`,
  },
  {
    stage: "deprecated",
    enabled: false,
    locked: true,
    names: `
      AllowOverwriteTerminationGracePeriodSeconds GitRepoVolumeDriver SeparateCacheWatchRPC`,
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

/**
 * Dependencies of gates (upstream's defaultKubernetesFeatureGateDependencies), without locked gates that are always on.
 */
const dependencies: Readonly<Record<string, readonly string[]>> = {
  ClusterTrustBundleProjection: ["ClusterTrustBundle"],
  DRADeviceBindingConditions: ["DRAResourceClaimDeviceStatus"],
  DRADeviceTaintRules: ["DRADeviceTaints"],
  DRAResourceClaimGranularStatusAuthorization: ["DRAResourceClaimDeviceStatus"],
  DRAWorkloadResourceClaims: ["GenericWorkload"],
  ExtendWebSocketsToKubelet: ["NodeDeclaredFeatures"],
  GangScheduling: ["GenericWorkload"],
  GracefulNodeShutdownBasedOnPodPriority: ["GracefulNodeShutdown"],
  InPlacePodLevelResourcesVerticalScaling: ["NodeDeclaredFeatures", "PodLevelResources"],
  InPlacePodVerticalScalingInitContainers: ["NodeDeclaredFeatures"],
  MatchLabelKeysInPodTopologySpreadSelectorMerge: ["MatchLabelKeysInPodTopologySpread"],
  PodLevelResourceManagers: ["PodLevelResources"],
  ResourceHealthStatusMessage: ["ResourceHealthStatus"],
  RestartAllContainersOnContainerExits: ["ContainerRestartRules", "NodeDeclaredFeatures"],
  StaleControllerConsistencyDaemonSet: ["AtomicFIFO"],
  StaleControllerConsistencyJob: ["AtomicFIFO"],
  StaleControllerConsistencyReplicaSet: ["AtomicFIFO"],
  StaleControllerConsistencyStatefulSet: ["AtomicFIFO"],
  StorageVersionAPI: ["APIServerIdentity"],
  TopologyAwareWorkloadScheduling: ["GenericWorkload"],
  UnknownVersionInteroperabilityProxy: ["APIServerIdentity"],
  UserNamespacesHostNetworkSupport: ["NodeDeclaredFeatures"],
  WindowsGracefulNodeShutdown: ["GracefulNodeShutdown"],
  WorkloadAwarePreemption: ["GangScheduling"],
  WorkloadWithJob: ["GenericWorkload"],
};

/** They set every alpha or beta gate that is not named. */
const wholeStages: Readonly<Record<string, Stage>> = { AllAlpha: "alpha", AllBeta: "beta" };

/** The gates that have an effect in podwright. */
const honoured = new Set([
  "AllowDNSOnlyNodeCSR",
  "CSIVolumeHealth",
  "ComponentFlagz",
  "ComponentStatusz",
  "ContainerCheckpoint",
  "CustomCPUCFSQuotaPeriod",
  "GracefulNodeShutdown",
  "GracefulNodeShutdownBasedOnPodPriority",
  "KubeletCrashLoopBackOffMax",
  "KubeletEnsureSecretPulledImages",
  "KubeletInUserNamespace",
  "KubeletPodResourcesListUseActivePods",
  "LocalStorageCapacityIsolationFSQuotaMonitoring",
  "MemoryQoS",
  "PodsAPI",
  "QOSReserved",
  "RotateKubeletServerCertificate",
]);

/** An invalid gate setting, in upstream's words. */
export interface GateError {
  readonly gate: string;
  readonly problem: string;
}

/** A configuration's feature gates. */
export interface FeatureGates {
  /** Whether the feature is enabled; false if unknown. */
  enabled(name: string): boolean;
  readonly errors: readonly GateError[];
  /** For settings that change gates without effect in podwright, including whole stages. */
  readonly warnings: readonly string[];
}

type Settings = Readonly<Record<string, boolean>>;

/** Reads the settings of `featureGates` and `--feature-gates`; validates them only on request. Pure. */
export function featureGates(settings: Settings = {}): FeatureGates {
  const enabled = (name: string): boolean => isEnabled(settings, name);
  return {
    enabled,
    get errors() {
      const errors = Object.entries(settings).flatMap(([name, value]) => settingProblem(name, value));
      return errors.length > 0 ? errors : missingDependencies(enabled);
    },
    get warnings() {
      return Object.entries(settings).flatMap(([name, value]) => settingWarning(settings, name, value));
    },
  };
}

function isEnabled(settings: Settings, name: string): boolean {
  const gate = gates.get(name);
  if (gate === undefined || gate.locked) return gate?.enabled ?? false;
  const ofStage = Object.entries(wholeStages).find(([, stage]) => stage === gate.stage);
  return settings[name] ?? (ofStage && settings[ofStage[0]]) ?? gate.enabled;
}

function settingProblem(name: string, value: boolean): GateError[] {
  const gate = gates.get(name);
  if (Object.hasOwn(wholeStages, name)) return [];
  const error = (problem: string): GateError[] => [{ gate: name, problem }];
  if (gate === undefined) return error(`unrecognized feature gate: ${name}${unknownHint(name)}`);
  if (!gate.locked || value === gate.enabled) return [];
  const locked = `cannot set feature gate ${name} to ${value}, feature is locked to ${gate.enabled}`;
  return error(`${locked}${gate.stage === "ga" ? ": delete it" : ""}`);
}

function unknownHint(name: string): string {
  const removed = removedGate(name);
  if (removed !== undefined) return ` (${removed})`;
  const meant = didYouMean(name, [...gates.keys(), ...Object.keys(wholeStages)]);
  return meant === undefined ? "" : `; did you mean ${meant}?`;
}

function missingDependencies(enabled: (name: string) => boolean): GateError[] {
  return Object.entries(dependencies).flatMap(([name, needed]) => {
    const off = needed.filter((each) => !enabled(each));
    if (off.length === 0 || !enabled(name)) return [];
    const problem = `${name} is enabled, but depends on features that are disabled: [${off.join(" ")}]`;
    return [{ gate: off[0] ?? name, problem }];
  });
}

function settingWarning(settings: Settings, name: string, value: boolean): string[] {
  const without = `feature gate ${name}=${value} has no effect in podwright`;
  if (!Object.hasOwn(wholeStages, name)) {
    const gate = gates.get(name);
    const matters = gate === undefined || gate.locked || value === gate.enabled || honoured.has(name);
    return matters ? [] : [without];
  }
  const changed = [...gates].filter(([each, { stage, enabled, locked }]) => {
    return stage === wholeStages[name] && !locked && enabled !== value && settings[each] === undefined;
  });
  if (changed.length === 0) return [];
  const looked = changed.map(([each]) => each).filter((each) => honoured.has(each));
  return [looked.length === 0 ? without : `${without} beyond ${looked.join(", ")}`];
}

export interface FeatureState {
  readonly name: string;
  /** As in upstream's metrics, where general availability is empty. */
  readonly stage: "ALPHA" | "BETA" | "" | "DEPRECATED";
  readonly enabled: boolean;
}

const stageWords = { alpha: "ALPHA", beta: "BETA", ga: "", deprecated: "DEPRECATED" } as const;

/** Every gate, ordered by name, including AllAlpha and AllBeta. Pure. */
export function featureStates(settings: Settings = {}): FeatureState[] {
  const whole = Object.entries(wholeStages).map(([name, stage]) => {
    return { name, stage: stageWords[stage], enabled: settings[name] ?? false };
  });
  const single = [...gates].map(([name, { stage }]) => {
    return { name, stage: stageWords[stage], enabled: isEnabled(settings, name) };
  });
  return [...whole, ...single].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Every known gate, for documentation and tests. */
export function knownFeatureGates(): ReadonlyMap<string, Gate> {
  return gates;
}
