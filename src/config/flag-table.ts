/**
 * How a flag's text is parsed. Repeated flags of lists and maps add up, except taints; the first occurrence replaces
 * the file's value.
 */
export type FlagKind =
  | "bool"
  /** 32 bits. */
  | "int"
  /** 64 bits. */
  | "long"
  | "duration"
  | "string"
  /** An IP address. */
  | "ip"
  /** `a,b` */
  | "list"
  /** `key=value,…` */
  | "map"
  /** `key=value,…`; a single key has an empty value. */
  | "labels"
  /** One `key=value` per flag; the value may contain commas. */
  | "pair"
  /** `key<value,…` */
  | "thresholds"
  /** `key=true,…` */
  | "booleans"
  /** `key:value,…`, several values per key. */
  | "headers"
  /** `key=value:Effect,…`; a later flag replaces earlier ones. */
  | "taints"
  /** `node:type=quantity,…` */
  | "reservedMemory"
  /** `pattern=N,…` */
  | "vmodule"
  /** `true`, `raw` or `vX.Y.Z…` */
  | "version";

/** A flag that sets a field of KubeletConfiguration. */
export interface ConfigurationFlag {
  readonly kind: FlagKind;
  /** Dotted path of the field. */
  readonly field: string;
}

/** Upstream's flags for fields of KubeletConfiguration: `[kind, field]` by flag name. */
const table: Readonly<Record<string, readonly [FlagKind, string]>> = {
  address: ["ip", "address"],
  "allowed-unsafe-sysctls": ["list", "allowedUnsafeSysctls"],
  "anonymous-auth": ["bool", "authentication.anonymous.enabled"],
  "authentication-token-webhook": ["bool", "authentication.webhook.enabled"],
  "authentication-token-webhook-cache-ttl": ["duration", "authentication.webhook.cacheTTL"],
  "authorization-mode": ["string", "authorization.mode"],
  "authorization-webhook-cache-authorized-ttl": ["duration", "authorization.webhook.cacheAuthorizedTTL"],
  "authorization-webhook-cache-unauthorized-ttl": ["duration", "authorization.webhook.cacheUnauthorizedTTL"],
  "cgroup-driver": ["string", "cgroupDriver"],
  "cgroup-root": ["string", "cgroupRoot"],
  "cgroups-per-qos": ["bool", "cgroupsPerQOS"],
  "client-ca-file": ["string", "authentication.x509.clientCAFile"],
  "cluster-dns": ["list", "clusterDNS"],
  "cluster-domain": ["string", "clusterDomain"],
  "container-log-max-files": ["int", "containerLogMaxFiles"],
  "container-log-max-size": ["string", "containerLogMaxSize"],
  "container-runtime-endpoint": ["string", "containerRuntimeEndpoint"],
  "contention-profiling": ["bool", "enableContentionProfiling"],
  "cpu-cfs-quota": ["bool", "cpuCFSQuota"],
  "cpu-cfs-quota-period": ["duration", "cpuCFSQuotaPeriod"],
  "cpu-manager-policy": ["string", "cpuManagerPolicy"],
  "cpu-manager-policy-options": ["pair", "cpuManagerPolicyOptions"],
  "cpu-manager-reconcile-period": ["duration", "cpuManagerReconcilePeriod"],
  "enable-controller-attach-detach": ["bool", "enableControllerAttachDetach"],
  "enable-debugging-handlers": ["bool", "enableDebuggingHandlers"],
  "enable-server": ["bool", "enableServer"],
  "enforce-node-allocatable": ["list", "enforceNodeAllocatable"],
  "event-burst": ["int", "eventBurst"],
  "event-qps": ["int", "eventRecordQPS"],
  "eviction-hard": ["thresholds", "evictionHard"],
  "eviction-max-pod-grace-period": ["int", "evictionMaxPodGracePeriod"],
  "eviction-minimum-reclaim": ["map", "evictionMinimumReclaim"],
  "eviction-pressure-transition-period": ["duration", "evictionPressureTransitionPeriod"],
  "eviction-soft": ["thresholds", "evictionSoft"],
  "eviction-soft-grace-period": ["map", "evictionSoftGracePeriod"],
  "fail-cgroupv1": ["bool", "failCgroupV1"],
  "fail-swap-on": ["bool", "failSwapOn"],
  "feature-gates": ["booleans", "featureGates"],
  "file-check-frequency": ["duration", "fileCheckFrequency"],
  "hairpin-mode": ["string", "hairpinMode"],
  "healthz-bind-address": ["ip", "healthzBindAddress"],
  "healthz-port": ["int", "healthzPort"],
  "http-check-frequency": ["duration", "httpCheckFrequency"],
  "image-gc-high-threshold": ["int", "imageGCHighThresholdPercent"],
  "image-gc-low-threshold": ["int", "imageGCLowThresholdPercent"],
  "image-service-endpoint": ["string", "imageServiceEndpoint"],
  "kernel-memcg-notification": ["bool", "kernelMemcgNotification"],
  "kube-api-burst": ["int", "kubeAPIBurst"],
  "kube-api-content-type": ["string", "contentType"],
  "kube-api-qps": ["int", "kubeAPIQPS"],
  "kube-reserved": ["map", "kubeReserved"],
  "kube-reserved-cgroup": ["string", "kubeReservedCgroup"],
  "kubelet-cgroups": ["string", "kubeletCgroups"],
  "local-storage-capacity-isolation": ["bool", "localStorageCapacityIsolation"],
  "log-flush-frequency": ["duration", "logging.flushFrequency"],
  "log-json-info-buffer-size": ["string", "logging.options.json.infoBufferSize"],
  "log-json-split-stream": ["bool", "logging.options.json.splitStream"],
  "log-text-info-buffer-size": ["string", "logging.options.text.infoBufferSize"],
  "log-text-split-stream": ["bool", "logging.options.text.splitStream"],
  "logging-format": ["string", "logging.format"],
  "make-iptables-util-chains": ["bool", "makeIPTablesUtilChains"],
  "manifest-url": ["string", "staticPodURL"],
  "manifest-url-header": ["headers", "staticPodURLHeader"],
  "max-open-files": ["long", "maxOpenFiles"],
  "max-pods": ["int", "maxPods"],
  "memory-manager-policy": ["string", "memoryManagerPolicy"],
  "minimum-image-ttl-duration": ["duration", "imageMinimumGCAge"],
  "node-status-max-images": ["int", "nodeStatusMaxImages"],
  "node-status-update-frequency": ["duration", "nodeStatusUpdateFrequency"],
  "oom-score-adj": ["int", "oomScoreAdj"],
  "pod-cidr": ["string", "podCIDR"],
  "pod-manifest-path": ["string", "staticPodPath"],
  "pod-max-pids": ["long", "podPidsLimit"],
  "pods-per-core": ["int", "podsPerCore"],
  port: ["int", "port"],
  "protect-kernel-defaults": ["bool", "protectKernelDefaults"],
  "provider-id": ["string", "providerID"],
  "qos-reserved": ["map", "qosReserved"],
  "read-only-port": ["int", "readOnlyPort"],
  "register-node": ["bool", "registerNode"],
  "register-with-taints": ["taints", "registerWithTaints"],
  "registry-burst": ["int", "registryBurst"],
  "registry-qps": ["int", "registryPullQPS"],
  "reserved-cpus": ["string", "reservedSystemCPUs"],
  "reserved-memory": ["reservedMemory", "reservedMemory"],
  "resolv-conf": ["string", "resolvConf"],
  "rotate-certificates": ["bool", "rotateCertificates"],
  "rotate-server-certificates": ["bool", "serverTLSBootstrap"],
  runonce: ["bool", "runOnce"],
  "runtime-request-timeout": ["duration", "runtimeRequestTimeout"],
  "serialize-image-pulls": ["bool", "serializeImagePulls"],
  "streaming-connection-idle-timeout": ["duration", "streamingConnectionIdleTimeout"],
  "sync-frequency": ["duration", "syncFrequency"],
  "system-cgroups": ["string", "systemCgroups"],
  "system-reserved": ["map", "systemReserved"],
  "system-reserved-cgroup": ["string", "systemReservedCgroup"],
  "tls-cert-file": ["string", "tlsCertFile"],
  "tls-cipher-suites": ["list", "tlsCipherSuites"],
  "tls-min-version": ["string", "tlsMinVersion"],
  "tls-private-key-file": ["string", "tlsPrivateKeyFile"],
  "topology-manager-policy": ["string", "topologyManagerPolicy"],
  "topology-manager-policy-options": ["map", "topologyManagerPolicyOptions"],
  "topology-manager-scope": ["string", "topologyManagerScope"],
  v: ["int", "logging.verbosity"],
  vmodule: ["vmodule", "logging.vmodule"],
  "volume-plugin-dir": ["string", "volumePluginDir"],
  "volume-stats-agg-period": ["duration", "volumeStatsAggPeriod"],
};

export const configurationFlags: ReadonlyMap<string, ConfigurationFlag> = new Map(
  Object.entries(table).map(([name, [kind, field]]) => [name, { kind, field }]),
);

/** Upstream deprecates every other configuration flag. */
export const lastingFlags: ReadonlySet<string> = new Set([
  "fail-cgroupv1",
  "log-flush-frequency",
  "provider-id",
  "v",
  "vmodule",
]);
