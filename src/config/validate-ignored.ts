import type { KubeletConfiguration } from "./defaults.ts";
import { durationProblem, formatGoDuration, parseGoDuration } from "../base/go-duration.ts";

/** The only version whose hidden metrics the kubelet of 1.36 can show. */
const previousMinor = "1.35";
const mostSamples = 1_000_000;

/**
 * Upstream's validation of fields that podwright does not honour, without the prefix `invalid configuration: `: a
 * configuration that podwright accepts must also start upstream's kubelet.
 */
export function* validateIgnored(configuration: KubeletConfiguration): Iterable<string> {
  const { showHiddenMetricsForVersion: version = "" } = configuration;
  if (version !== "" && version !== previousMinor) {
    const rule = `must be omitted or have the value '${previousMinor}'; only the previous minor version is allowed`;
    yield `invalid showHiddenMetricsForVersion: ${invalid("showHiddenMetricsForVersion", version, rule)}`;
  }
  yield* tracing(configuration);
  yield* logging(configuration);
  yield* policies(configuration);
}

function invalid(field: string, value: unknown, rule: string): string {
  return `${field}: Invalid value: ${JSON.stringify(value)}: ${rule}`;
}

function* tracing({ tracing: given = {} }: KubeletConfiguration): Iterable<string> {
  const { samplingRatePerMillion: rate = 0, endpoint } = given;
  if (rate < 0) yield invalid("tracing.samplingRatePerMillion", rate, "sampling rate must be positive");
  if (rate > mostSamples) {
    const rule = "sampling rate per million must be less than or equal to one million";
    yield invalid("tracing.samplingRatePerMillion", rate, rule);
  }
  if (endpoint === undefined) return;
  const url = endpoint.includes("//") ? endpoint : `dns://${endpoint}`;
  const scheme = /^([a-z][a-z0-9+.-]*):/iu.exec(url)?.[1]?.toLowerCase() ?? "";
  if (!["dns", "unix", "unix-abstract"].includes(scheme)) {
    const rule = `unsupported scheme: ${scheme}.  Options are none, dns, unix, or unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md`;
    yield invalid("tracing.endpoint", url, rule);
  } else if (!URL.canParse(url)) {
    yield invalid("tracing.endpoint", url, `parse ${JSON.stringify(url)}: it is not a URL`);
  }
}

function* logging({ logging: given }: KubeletConfiguration): Iterable<string> {
  const { flushFrequency, format, vmodule = [] } = given;
  const flushMs = typeof flushFrequency === "number" ? flushFrequency / 1e6 : parseGoDuration(flushFrequency);
  if (flushMs === undefined) {
    yield invalid("logging.flushFrequency", flushFrequency, durationProblem(flushFrequency));
  } else if (flushMs <= 0) {
    yield invalid("logging.flushFrequency", formatGoDuration(flushMs), "Must be greater than zero");
  }
  if (vmodule.length > 0 && format !== "text") yield "logging.vmodule: Forbidden: Only supported for text log format";
  for (const [index, { filePattern, verbosity }] of vmodule.entries()) {
    const field = `logging.vmodule[${index}]`;
    if (filePattern === "") yield `${field}: Required value: File pattern must not be empty`;
    if (/[=,]/u.test(filePattern)) {
      yield invalid(field, filePattern, "File pattern must not contain equal sign or comma");
    }
    if (verbosity < 0) yield invalid(field, verbosity, "Must be <= 2147483647");
  }
}

/** Upstream reports these later, when it creates the managers. */
function* policies(configuration: KubeletConfiguration): Iterable<string> {
  const { cpuManagerPolicy, memoryManagerPolicy, configMapAndSecretChangeDetectionStrategy: strategy } = configuration;
  if (!["none", "static"].includes(cpuManagerPolicy)) {
    yield `cpuManagerPolicy (--cpu-manager-policy): unknown policy: ${JSON.stringify(cpuManagerPolicy)}`;
  }
  if (!["None", "Static"].includes(memoryManagerPolicy)) {
    yield `memoryManagerPolicy (--memory-manager-policy): unknown policy: ${JSON.stringify(memoryManagerPolicy)}`;
  }
  if (!["Get", "Cache", "Watch"].includes(strategy)) {
    yield `configMapAndSecretChangeDetectionStrategy: unknown configmap and secret manager mode: ${strategy}`;
  }
}
