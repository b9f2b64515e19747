import assert from "node:assert/strict";
import { test } from "node:test";
import { withDefaults } from "./defaults.ts";
import { featureGates } from "./feature-gates.ts";
import type { PartialConfiguration } from "./schema.ts";
import { validateConfiguration } from "./validate.ts";

function problems(given: PartialConfiguration, cgroupVersion: 1 | 2 = 2): string[] {
  return validateConfiguration(withDefaults(given), featureGates(given.featureGates), { cgroupVersion });
}

test("the defaults are valid", () => assert.deepEqual(problems({}), []));

/** Upstream's messages. */
const samples: readonly (readonly [PartialConfiguration, ...messages: string[]])[] = [
  [{ nodeLeaseDurationSeconds: -1 }, "nodeLeaseDurationSeconds must be greater than 0"],
  [{ eventBurst: -1 }, "eventBurst (--event-burst) -1 must not be a negative number"],
  [{ maxPods: -5 }, "maxPods (--max-pods) -5 must not be a negative number"],
  [{ healthzPort: 70_000 }, "healthzPort (--healthz-port) 70000 must be between 1 and 65535, inclusive"],
  [{ port: -1 }, "port (--port) -1 must be between 1 and 65535, inclusive"],
  [{ oomScoreAdj: 1001 }, "oomScoreAdj (--oom-score-adj) 1001 must be between -1000 and 1000, inclusive"],
  [{ nodeStatusMaxImages: -2 }, "nodeStatusMaxImages (--node-status-max-images) -2 must be -1 or greater"],
  [
    { imageGCHighThresholdPercent: 70 },
    "imageGCLowThresholdPercent (--image-gc-low-threshold) 80 must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) 70",
  ],
  [
    { cpuCFSQuotaPeriod: "2s" },
    "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) 2s must be between 1ms and 1sec, inclusive",
  ],
  [
    { cpuCFSQuotaPeriod: "50ms", featureGates: { CustomCPUCFSQuotaPeriod: false } },
    "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) 50ms requires feature gate CustomCPUCFSQuotaPeriod",
  ],
  [{ imageMaximumGCAge: "1m" }, "imageMaximumGCAge 1m0s must be greater than imageMinimumGCAge 2m0s"],
  [{ maxParallelImagePulls: 0 }, "maxParallelImagePulls 0 must be a positive number"],
  [
    { serializeImagePulls: true, maxParallelImagePulls: 3 },
    "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) is set to false",
  ],
  [{ runOnce: true }, "runOnce (--runOnce) true, Runonce mode has been deprecated and should not be set"],
  [
    { crashLoopBackOff: { maxContainerRestartPeriod: "6m" } },
    "CrashLoopBackOff.MaxContainerRestartPeriod (got: 360 seconds) must be set between 1s and 300s",
  ],
  [
    { crashLoopBackOff: { maxContainerRestartPeriod: "1m" }, featureGates: { KubeletCrashLoopBackOffMax: false } },
    "FeatureGate KubeletCrashLoopBackOffMax not enabled, CrashLoopBackOff.MaxContainerRestartPeriod must not be set",
  ],
  [
    { topologyManagerPolicy: "some" },
    'topologyManagerPolicy (--topology-manager-policy) "some" must be one of: ["none" "best-effort" "restricted" "single-numa-node"]',
  ],
  [
    { hairpinMode: "x" },
    'option "x" specified for hairpinMode (--hairpin-mode). Valid options are "none", "hairpin-veth" or "promiscuous-bridge"',
  ],
  [
    { memorySwap: { swapBehavior: "Always" } },
    'memorySwap.swapBehavior "Always" must be one of: "", "LimitedSwap" or "NoSwap"',
  ],
  [
    { shutdownGracePeriod: "500ms", shutdownGracePeriodCriticalPods: "10s" },
    "shutdownGracePeriodCriticalPods 10s must be <= shutdownGracePeriod 500ms",
    "shutdownGracePeriod 500ms must be either zero or otherwise >= 1 sec",
  ],
  [
    { shutdownGracePeriod: "-1m0s", shutdownGracePeriodCriticalPods: "-2m0s" },
    "shutdownGracePeriod -1m0s must be either zero or otherwise >= 1 sec",
    "shutdownGracePeriodCriticalPods -2m0s must be either zero or otherwise >= 1 sec",
  ],
  [
    { enforceNodeAllocatable: ["pods", "system-reserved", "pods"] },
    'systemReservedCgroup (--system-reserved-cgroup) must be specified when "system-reserved" or "system-reserved-compressible" included in enforceNodeAllocatable (--enforce-node-allocatable)',
    'duplicated enforcements "pods" in enforceNodeAllocatable (--enforce-node-allocatable)',
  ],
  [
    { enforceNodeAllocatable: ["none", "pods"] },
    'enforceNodeAllocatable (--enforce-node-allocatable) may not contain additional enforcements when "none" is specified',
  ],
  [{ systemReserved: { cpu: "1x" } }, 'systemReserved: failed to parse quantity "1x" for "cpu" resource'],
  [{ kubeReserved: { gpu: "1" } }, 'kubeReserved: cannot reserve "gpu" resource'],
  [
    { reservedMemory: [{ numaNode: 0, limits: { memory: "0" } }] },
    'reserved memory may not be zero for NUMA node 0 and resource "memory"',
  ],
  [{ registerWithTaints: [{ key: "a b", effect: "NoSchedule" }] }, "invalid taint: a b=:NoSchedule"],
  [{ containerLogMaxFiles: 1 }, "containerLogMaxFiles must be greater than 1"],
  [
    { containerLogMonitorInterval: "2s" },
    "containerLogMonitorInterval must be a positive time duration greater than or equal to 3s",
  ],
  [{ podLogsDir: "logs" }, 'pod logs path "logs" must be absolute path'],
  [{ podLogsDir: "/var/../log" }, 'pod logs path "/var/../log" must be normalized'],
  [{ podLogsDir: "/var/lög" }, 'pod logs path "/var/lög" mut contains ASCII characters only'],
  [{ memoryThrottlingFactor: 1.5 }, "memoryThrottlingFactor 1.5 must be greater than 0 and less than or equal to 1.0"],
  [
    { memoryReservationPolicy: "TieredReservation" },
    'memoryReservationPolicy "TieredReservation" requires MemoryQoS feature gate to be enabled',
  ],
  [
    { enableSystemLogQuery: true, enableSystemLogHandler: false },
    "enableSystemLogHandler is required for enableSystemLogQuery",
  ],
  [{ userNamespaces: { idsPerPod: 65_537 } }, "userNamespaces.idsPerPod must be a multiple of 65536"],
  [{ logging: { format: "xml" } }, 'logging.format: Invalid value: "xml": Unsupported log format'],
  [
    {
      imagePullCredentialsVerificationPolicy: "NeverVerifyAllowlistedImages",
      preloadedImagesVerificationAllowlist: ["docker.io/library/*", "*"],
    },
    "invalid image pattern in `preloadedImagesVerificationAllowlist`: not a valid wildcard pattern, only patterns ending with '/*' are allowed: *",
  ],
  [
    { reservedSystemCPUs: "3-1" },
    'unable to parse reservedSystemCPUs (--reserved-cpus) 3-1, error: invalid range "3-1" (3 > 1)',
  ],
  [
    { showHiddenMetricsForVersion: "1.2" },
    "invalid showHiddenMetricsForVersion: showHiddenMetricsForVersion: Invalid value: \"1.2\": must be omitted or have the value '1.35'; only the previous minor version is allowed",
  ],
  [
    { tracing: { samplingRatePerMillion: -5, endpoint: "foo bar" } },
    "tracing.samplingRatePerMillion: Invalid value: -5: sampling rate must be positive",
    'tracing.endpoint: Invalid value: "dns://foo bar": parse "dns://foo bar": it is not a URL',
  ],
  [
    { tracing: { samplingRatePerMillion: 1_000_001, endpoint: "https://a" } },
    "tracing.samplingRatePerMillion: Invalid value: 1000001: sampling rate per million must be less than or equal to one million",
    'tracing.endpoint: Invalid value: "https://a": unsupported scheme: https.  Options are none, dns, unix, or unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md',
  ],
  [{ logging: { flushFrequency: "-1s" } }, 'logging.flushFrequency: Invalid value: "-1s": Must be greater than zero'],
  [
    { logging: { flushFrequency: "soon" } },
    'logging.flushFrequency: Invalid value: "soon": expected a duration such as "10s" or "1h30m"',
  ],
  [
    {
      logging: {
        format: "json",
        vmodule: [
          { filePattern: "", verbosity: 1 },
          { filePattern: "a=b", verbosity: -1 },
        ],
      },
    },
    "logging.vmodule: Forbidden: Only supported for text log format",
    "logging.vmodule[0]: Required value: File pattern must not be empty",
    'logging.vmodule[1]: Invalid value: "a=b": File pattern must not contain equal sign or comma',
    "logging.vmodule[1]: Invalid value: -1: Must be <= 2147483647",
  ],
  [{ cpuManagerPolicy: "some" }, 'cpuManagerPolicy (--cpu-manager-policy): unknown policy: "some"'],
  [{ memoryManagerPolicy: "static" }, 'memoryManagerPolicy (--memory-manager-policy): unknown policy: "static"'],
  [
    { configMapAndSecretChangeDetectionStrategy: "Poll" },
    "configMapAndSecretChangeDetectionStrategy: unknown configmap and secret manager mode: Poll",
  ],
  [
    { qosReserved: { cpu: "50%", memory: "half" } },
    '--qos-reserved value failed to parse: cannot reserve "cpu" resource',
    '--qos-reserved value failed to parse: failed to parse percentage "half" for "memory" resource: percentage expected, got \'half\'',
  ],
  [
    { qosReserved: { memory: "101%" } },
    '--qos-reserved value failed to parse: failed to parse percentage "101%" for "memory" resource: percentage must be between 0 and 100',
  ],
];

for (const [given, ...messages] of samples) {
  test(`upstream rejects ${JSON.stringify(given)}`, () => {
    assert.deepEqual(
      problems(given),
      messages.map((message) => `invalid configuration: ${message}`),
    );
  });
}

test("values that upstream accepts are accepted for unsupported fields, too", () => {
  const given: PartialConfiguration = {
    showHiddenMetricsForVersion: "1.35",
    logging: { flushFrequency: 1_000_000, vmodule: [{ filePattern: "pod*", verbosity: 3 }] },
    cpuManagerPolicy: "static",
    memoryManagerPolicy: "Static",
    configMapAndSecretChangeDetectionStrategy: "Cache",
    qosReserved: { memory: "100%" },
  };
  for (const endpoint of [
    "localhost:4317",
    "dns://8.8.8.8/collector:4317",
    "unix:///run/collector.sock",
    "[::1]:4317",
  ]) {
    assert.deepEqual(problems({ ...given, tracing: { samplingRatePerMillion: 1_000_000, endpoint } }), [], endpoint);
  }
});

test("a negative period of a shutdown group is rejected", () => {
  const group = { priority: 5, shutdownGracePeriodSeconds: -10 };
  assert.deepEqual(
    problems({ shutdownGracePeriodByPodPriority: [{ ...group, shutdownGracePeriodSeconds: 0 }, group] }),
    [
      "invalid configuration: shutdownGracePeriodByPodPriority has -10 shutdownGracePeriodSeconds for priority 5, which must not be negative",
    ],
  );
});

test("intervals and timeouts must be positive", () => {
  const periods = [
    ...["syncFrequency", "fileCheckFrequency", "httpCheckFrequency", "nodeStatusUpdateFrequency"],
    ...["nodeStatusReportFrequency", "runtimeRequestTimeout"],
  ];
  for (const field of periods) {
    assert.match(problems({ [field]: "-5s" }).join(), new RegExp(`${field} .*-5s must be greater than 0; omit it`));
    assert.deepEqual(problems({ [field]: "0s" }), [], "zero means the default where the field is written");
    const zero = { ...withDefaults({}), [field]: "0s" };
    assert.equal(validateConfiguration(zero, featureGates(), { cgroupVersion: 2 }).length, 1, field);
  }
  assert.deepEqual(problems({ syncFrequency: "-10s" }), [
    "invalid configuration: syncFrequency (--sync-frequency) -10s must be greater than 0; omit it for 1m0s",
  ]);
  assert.deepEqual(problems({ volumeStatsAggPeriod: "-1s", streamingConnectionIdleTimeout: "-1s" }), []);
});

test("two taints with the same key and effect are rejected, because the API server would reject the node", () => {
  const taint = { key: "a", effect: "NoSchedule" };
  assert.deepEqual(problems({ registerWithTaints: [taint, { ...taint, effect: "NoExecute" }] }), []);
  assert.deepEqual(problems({ registerWithTaints: [taint, { ...taint, value: "b" }] }), [
    "invalid configuration: duplicated taints with the same key and effect: a=b:NoSchedule",
  ]);
});

test("all problems are reported at once", () => {
  assert.equal(problems({ maxPods: -1, eventBurst: -1 }).length, 2);
});

test("a cgroup v1 host must be allowed, and cannot set singleProcessOOMKill to false", () => {
  assert.match(problems({}, 1).join(), /^kubelet is configured to not run on a host using cgroup v1/);
  assert.deepEqual(problems({ failCgroupV1: false }, 1), []);
  assert.deepEqual(problems({ failCgroupV1: false, singleProcessOOMKill: false }, 1), [
    "invalid configuration: singleProcessOOMKill must not be explicitly set to false when using cgroup v1",
  ]);
});
