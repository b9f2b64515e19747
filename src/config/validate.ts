import { allowlistProblem } from "../images/pull-record.ts";
import { labelValueProblem, qualifiedNameProblem } from "../base/formats.ts";
import { withDefaults, type KubeletConfiguration } from "./defaults.ts";
import type { FeatureGates } from "./feature-gates.ts";
import { formatGoDuration, parseGoDuration } from "../base/go-duration.ts";
import { validateAllocation } from "./validate-allocation.ts";
import { validateIgnored } from "./validate-ignored.ts";
import { validateMachine } from "./validate-machine.ts";

/**
 * Upstream's ValidateKubeletConfiguration (1.36), in its words, without {@link FeatureGates.errors}.
 * @param machine the node's own
 */
export function validateConfiguration(
  configuration: KubeletConfiguration,
  gates: FeatureGates,
  machine: { readonly cgroupVersion: 1 | 2 },
): string[] {
  return [
    ...[
      ...numbers(configuration),
      ...pulls(configuration, gates),
      ...times(configuration, gates),
      ...choices(configuration),
      ...behindGates(configuration, gates),
      ...validateAllocation(configuration),
      ...taints(configuration),
      ...logHandling(configuration),
      ...validateIgnored(configuration),
    ].map((problem) => `invalid configuration: ${problem}`),
    ...validateMachine(configuration, machine),
  ];
}

export function ms(duration: string): number {
  return parseGoDuration(duration) ?? 0;
}

function quoted(value: string): string {
  return JSON.stringify(value);
}

/** Numbers that must not be negative, with their flags. */
const notNegative = [
  ["eventBurst", "event-burst"],
  ["eventRecordQPS", "event-qps"],
  ["kubeAPIBurst", "kube-api-burst"],
  ["kubeAPIQPS", "kube-api-qps"],
  ["maxOpenFiles", "max-open-files"],
  ["maxPods", "max-pods"],
  ["podsPerCore", "pods-per-core"],
  ["registryBurst", "registry-burst"],
  ["registryPullQPS", "registry-qps"],
] as const;

/** Numbers with a minimum and a maximum. */
const ranges = [
  ["healthzPort", "healthz-port", 0, 65_535, "1"],
  ["imageGCHighThresholdPercent", "image-gc-high-threshold", 0, 100, "0"],
  ["imageGCLowThresholdPercent", "image-gc-low-threshold", 0, 100, "0"],
  ["iptablesDropBit", "iptables-drop-bit", 0, 31, "0"],
  ["iptablesMasqueradeBit", "iptables-masquerade-bit", 0, 31, "0"],
  ["oomScoreAdj", "oom-score-adj", -1000, 1000, "-1000"],
  ["port", "port", 1, 65_535, "1"],
  ["readOnlyPort", "read-only-port", 0, 65_535, "0"],
] as const;

function* numbers(configuration: KubeletConfiguration): Iterable<string> {
  if (configuration.nodeLeaseDurationSeconds <= 0) yield "nodeLeaseDurationSeconds must be greater than 0";
  for (const [field, flag] of notNegative) {
    const value = configuration[field] ?? 0;
    if (value < 0) yield `${field} (--${flag}) ${value} must not be a negative number`;
  }
  for (const [field, flag, least, greatest, shownLeast] of ranges) {
    const value = configuration[field] ?? 0;
    if (value < least || value > greatest) {
      yield `${field} (--${flag}) ${value} must be between ${shownLeast} and ${greatest}, inclusive`;
    }
  }
  const { imageGCLowThresholdPercent: low, imageGCHighThresholdPercent: high, nodeStatusMaxImages } = configuration;
  if (low >= high) {
    yield `imageGCLowThresholdPercent (--image-gc-low-threshold) ${low} must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) ${high}`;
  }
  if (nodeStatusMaxImages < -1) {
    yield `nodeStatusMaxImages (--node-status-max-images) ${nodeStatusMaxImages} must be -1 or greater`;
  }
  if (configuration.systemCgroups && !configuration.cgroupRoot) {
    yield "systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified";
  }
  const factor = configuration.memoryThrottlingFactor;
  if (factor <= 0 || factor > 1) {
    yield `memoryThrottlingFactor ${factor} must be greater than 0 and less than or equal to 1.0`;
  }
  if (configuration.runOnce === true) {
    yield "runOnce (--runOnce) true, Runonce mode has been deprecated and should not be set";
  }
}

const verificationPolicies = [
  "NeverVerify",
  "NeverVerifyPreloadedImages",
  "NeverVerifyAllowlistedImages",
  "AlwaysVerify",
];

function* pulls(configuration: KubeletConfiguration, gates: FeatureGates): Iterable<string> {
  const { maxParallelImagePulls: parallel, serializeImagePulls } = configuration;
  if (parallel !== undefined && parallel < 1) yield `maxParallelImagePulls ${parallel} must be a positive number`;
  if (serializeImagePulls && parallel !== undefined && parallel > 1) {
    yield "maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) is set to false";
  }
  const { imagePullCredentialsVerificationPolicy: policy, preloadedImagesVerificationAllowlist: allowed = [] } =
    configuration;
  if (!gates.enabled("KubeletEnsureSecretPulledImages")) {
    const unlessGate = "must not be set if KubeletEnsureSecretPulledImages feature gate is not enabled";
    if (policy !== "") yield `\`imagePullCredentialsVerificationPolicy\` ${unlessGate}`;
    if (allowed.length > 0) yield `\`preloadedImagesVerificationAllowlist\` ${unlessGate}`;
    return;
  }
  if (!verificationPolicies.includes(policy)) {
    yield `option ${quoted(policy)} specified for imagePullCredentialsVerificationPolicy. Valid options are ${either(verificationPolicies)}`;
  }
  if (allowed.length > 0 && policy !== "NeverVerifyAllowlistedImages") {
    yield 'can\'t set `preloadedImagesVerificationAllowlist` if `imagePullCredentialsVertificationPolicy` is not "NeverVerifyAllowlistedImages"';
    return;
  }
  const problem = allowed.map(allowlistProblem).find((each) => each !== undefined);
  if (problem !== undefined) {
    yield `invalid image pattern in \`preloadedImagesVerificationAllowlist\`: ${problem}`;
  }
}

/**
 * Upstream accepts zero and negative values, with which a periodic task would loop without pause, or never run. A zero
 * here comes from the command line: in a file it means the default.
 */
const positive = {
  syncFrequency: "sync-frequency",
  fileCheckFrequency: "file-check-frequency",
  httpCheckFrequency: "http-check-frequency",
  nodeStatusUpdateFrequency: "node-status-update-frequency",
  nodeStatusReportFrequency: undefined,
  runtimeRequestTimeout: "runtime-request-timeout",
} as const;

function* positiveDurations(configuration: KubeletConfiguration): Iterable<string> {
  const defaults = withDefaults({});
  for (const [name, flag] of Object.entries(positive)) {
    const field = name as keyof typeof positive;
    const period = ms(configuration[field]);
    if (period > 0) continue;
    const shown = `${field}${flag === undefined ? "" : ` (--${flag})`} ${formatGoDuration(period)}`;
    yield `${shown} must be greater than 0; omit it for ${defaults[field]}`;
  }
}

function* times(configuration: KubeletConfiguration, gates: FeatureGates): Iterable<string> {
  yield* positiveDurations(configuration);
  const period = ms(configuration.cpuCFSQuotaPeriod);
  const shown = `cpuCFSQuotaPeriod (--cpu-cfs-quota-period) ${formatGoDuration(period)}`;
  if (!gates.enabled("CustomCPUCFSQuotaPeriod")) {
    if (period !== 100) yield `${shown} requires feature gate CustomCPUCFSQuotaPeriod`;
  } else if (period < 1 || period > 1000) {
    yield `${shown} must be between 1ms and 1sec, inclusive`;
  }
  const [least, greatest] = [ms(configuration.imageMinimumGCAge), ms(configuration.imageMaximumGCAge)];
  if (least < 0) yield `imageMinimumGCAge ${formatGoDuration(least)} must not be negative`;
  if (greatest < 0) yield `imageMaximumGCAge ${formatGoDuration(greatest)} must not be negative`;
  if (greatest > 0 && greatest <= least) {
    yield `imageMaximumGCAge ${formatGoDuration(greatest)} must be greater than imageMinimumGCAge ${formatGoDuration(least)}`;
  }
  yield* restartPeriod(configuration.crashLoopBackOff.maxContainerRestartPeriod, gates);
}

function* restartPeriod(period: string | undefined, gates: FeatureGates): Iterable<string> {
  if (!gates.enabled("KubeletCrashLoopBackOffMax")) {
    if (period !== undefined) {
      yield "FeatureGate KubeletCrashLoopBackOffMax not enabled, CrashLoopBackOff.MaxContainerRestartPeriod must not be set";
    }
  } else if (period === undefined) {
    yield "FeatureGate KubeletCrashLoopBackOffMax is enabled, CrashLoopBackOff.MaxContainerRestartPeriod must be set";
  } else if (ms(period) < 1000 || ms(period) > 300_000) {
    yield `CrashLoopBackOff.MaxContainerRestartPeriod (got: ${ms(period) / 1000} seconds) must be set between 1s and 300s`;
  }
}

const topologyPolicies = ["none", "best-effort", "restricted", "single-numa-node"];

function* choices(configuration: KubeletConfiguration): Iterable<string> {
  const { topologyManagerPolicy, topologyManagerScope, hairpinMode, memoryReservationPolicy } = configuration;
  if (!topologyPolicies.includes(topologyManagerPolicy)) {
    yield `topologyManagerPolicy (--topology-manager-policy) ${quoted(topologyManagerPolicy)} must be one of: [${topologyPolicies.map(quoted).join(" ")}]`;
  }
  if (!["container", "pod"].includes(topologyManagerScope)) {
    yield `topologyManagerScope (--topology-manager-scope) ${quoted(topologyManagerScope)} must be one of: "container", or "pod"`;
  }
  if (!["none", "hairpin-veth", "promiscuous-bridge"].includes(hairpinMode)) {
    yield `option ${quoted(hairpinMode)} specified for hairpinMode (--hairpin-mode). Valid options are "none", "hairpin-veth" or "promiscuous-bridge"`;
  }
  if (!["None", "TieredReservation"].includes(memoryReservationPolicy)) {
    yield `option ${quoted(memoryReservationPolicy)} specified for memoryReservationPolicy. Valid options are "None" or "TieredReservation"`;
  }
  const swap = configuration.memorySwap?.swapBehavior ?? "";
  if (!["", "NoSwap", "LimitedSwap"].includes(swap)) {
    yield `memorySwap.swapBehavior ${quoted(swap)} must be one of: "", "LimitedSwap" or "NoSwap"`;
  }
}

function* behindGates(configuration: KubeletConfiguration, gates: FeatureGates): Iterable<string> {
  const { memoryReservationPolicy, serverTLSBootstrap } = configuration;
  if (serverTLSBootstrap === true && !gates.enabled("RotateKubeletServerCertificate")) {
    yield "serverTLSBootstrap true requires feature gate RotateKubeletServerCertificate";
  }
  if (memoryReservationPolicy === "TieredReservation" && !gates.enabled("MemoryQoS")) {
    yield `memoryReservationPolicy ${quoted(memoryReservationPolicy)} requires MemoryQoS feature gate to be enabled`;
  }
  const whole = ms(configuration.shutdownGracePeriod);
  const critical = ms(configuration.shutdownGracePeriodCriticalPods);
  const byPriority = (configuration.shutdownGracePeriodByPodPriority ?? []).length > 0;
  if (gates.enabled("GracefulNodeShutdown")) {
    if (critical > whole) {
      yield `shutdownGracePeriodCriticalPods ${formatGoDuration(critical)} must be <= shutdownGracePeriod ${formatGoDuration(whole)}`;
    }
    for (const [field, period] of Object.entries({
      shutdownGracePeriod: whole,
      shutdownGracePeriodCriticalPods: critical,
    })) {
      if (period < 0 || (period > 0 && period < 1000)) {
        yield `${field} ${formatGoDuration(period)} must be either zero or otherwise >= 1 sec`;
      }
    }
  } else if (whole > 0 || critical > 0) {
    yield "specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate GracefulNodeShutdown";
  }
  for (const { priority, shutdownGracePeriodSeconds: seconds } of configuration.shutdownGracePeriodByPodPriority ??
    []) {
    if (seconds >= 0) continue;
    yield `shutdownGracePeriodByPodPriority has ${seconds} shutdownGracePeriodSeconds for priority ${priority}, which must not be negative`;
  }
  if (!byPriority) return;
  if (!gates.enabled("GracefulNodeShutdownBasedOnPodPriority")) {
    yield "Specifying shutdownGracePeriodByPodPriority requires feature gate GracefulNodeShutdownBasedOnPodPriority";
  } else if (whole > 0 || critical > 0) {
    yield "Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time";
  }
}

const taintEffects = new Set(["", "NoSchedule", "PreferNoSchedule", "NoExecute"]);

function* taints(configuration: KubeletConfiguration): Iterable<string> {
  const seen = new Set<string>();
  for (const { key, value = "", effect, timeAdded } of configuration.registerWithTaints ?? []) {
    const isGood =
      qualifiedNameProblem(key) === undefined && labelValueProblem(value) === undefined && taintEffects.has(effect);
    if (!isGood) yield `invalid taint: ${key}=${value}:${effect}`;
    if (timeAdded !== undefined) yield "taint.TimeAdded is not nil";
    // Upstream checks only the flag; with a file, the API server rejects each registration.
    const identity = `${key}:${effect}`;
    if (seen.has(identity)) yield `duplicated taints with the same key and effect: ${key}=${value}:${effect}`;
    seen.add(identity);
  }
}

function* logHandling(configuration: KubeletConfiguration): Iterable<string> {
  const { enableSystemLogQuery, enableSystemLogHandler, logging } = configuration;
  if (enableSystemLogQuery === true && !enableSystemLogHandler) {
    yield "enableSystemLogHandler is required for enableSystemLogQuery";
  }
  if (configuration.containerLogMaxWorkers < 1) yield "containerLogMaxWorkers must be greater than or equal to 1";
  if (ms(configuration.containerLogMonitorInterval) < 3000) {
    yield "containerLogMonitorInterval must be a positive time duration greater than or equal to 3s";
  }
  if (configuration.containerLogMaxFiles <= 1) yield "containerLogMaxFiles must be greater than 1";
  const path = configuration.podLogsDir;
  if (!path.startsWith("/")) yield `pod logs path ${quoted(path)} must be absolute path`;
  if (!isNormalized(path)) yield `pod logs path ${quoted(path)} must be normalized`;
  if (!/^[\u0000-\u007f]*$/u.test(path)) yield `pod logs path ${quoted(path)} mut contains ASCII characters only`;
  if (!["text", "json"].includes(logging.format)) {
    yield `logging.format: Invalid value: ${quoted(logging.format)}: Unsupported log format`;
  }
  if (logging.verbosity < 0 || logging.verbosity > 2 ** 31 - 1) {
    yield `logging.verbosity: Invalid value: ${logging.verbosity}: Must be <= 2147483647`;
  }
}

/** Unchanged by Go's filepath.Clean. */
function isNormalized(path: string): boolean {
  const parts = path.replace(/^\//u, "").split("/");
  return path === "/" || parts.every((part) => part !== "" && part !== "." && part !== "..");
}

function either(values: readonly string[]): string {
  return `${values.slice(0, -1).map(quoted).join(", ")} or ${quoted(values.at(-1) ?? "")}`;
}
