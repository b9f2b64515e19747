import type { ParsedFamily } from "./exposition.ts";

/** Kubernetes' names that violate the rules of others or its own later ones. */
const excepted = new Set([
  // Counters without _total.
  "kubelet_evented_pleg_connection_error_count",
  "kubelet_evented_pleg_connection_success_count",
  "kubelet_pleg_discard_events",
  "kubelet_evictions",
  "kubelet_preemptions",
  "container_memory_failcnt",
  "kubelet_certificate_manager_client_expiration_renew_errors",
  "kubelet_server_expiration_renew_errors",
  ...["list", "get", "get_allocatable"].flatMap((method) => [
    `kubelet_pod_resources_endpoint_requests_${method}`,
    `kubelet_pod_resources_endpoint_errors_${method}`,
  ]),
  // In milliseconds.
  "kubelet_pod_resize_duration_milliseconds",
  // Not counters, but with a counter's suffix.
  "kubelet_containers_per_pod_count",
  "container_fs_inodes_total",
]);

const units: Readonly<Record<string, string>> = {
  milliseconds: "seconds",
  minutes: "seconds",
  hours: "seconds",
  days: "seconds",
  kilobytes: "bytes",
  megabytes: "bytes",
  gigabytes: "bytes",
  bits: "bytes",
  celsius_degrees: "celsius",
};

/** The complaints of promtool's `check metrics`; empty: none. */
export function promlint(families: readonly ParsedFamily[]): string[] {
  return families
    .filter(({ name }) => !excepted.has(name))
    .flatMap((family) => problemsOf(family).map((problem) => `${family.name}: ${problem}`));
}

function problemsOf({ name, help, type, series }: ParsedFamily): string[] {
  const problems: string[] = [];
  const complain = (when: boolean, problem: string): void => {
    if (when) problems.push(problem);
  };
  complain(help === undefined || help === "", "no help text");
  complain(type === undefined, "no type");
  complain(type === "counter" && !name.endsWith("_total"), 'counter metrics should have "_total" suffix');
  complain(type !== "counter" && name.endsWith("_total"), 'non-counter metrics should not have "_total" suffix');
  complain(type !== "histogram" && name.endsWith("_bucket"), 'non-histogram metrics should not have "_bucket" suffix');
  for (const suffix of ["_sum", "_count"]) {
    complain(type !== "histogram" && name.endsWith(suffix), `only histograms have the suffix ${suffix}`);
  }
  complain(/[a-z][A-Z]/u.test(name), "metric names should be written in 'snake_case'");
  complain(name.includes(":"), "metric names should not contain ':'");
  complain(/(?:counter|gauge|histogram|summary)/u.test(name), "metric name should not include its type");
  for (const [unit, base] of Object.entries(units)) {
    complain(name.split("_").includes(unit), `use base unit "${base}" instead of "${unit}"`);
  }
  for (const { labels, value } of series) {
    complain(type === "counter" && !(value >= 0), "a counter is negative");
    for (const label of labels.keys()) {
      complain(/[a-z][A-Z]/u.test(label) && !name.startsWith("cadvisor_"), `label ${label} is not in snake_case`);
    }
    complain(type !== "histogram" && labels.has("le"), 'non-histogram metrics should not have "le" label');
  }
  if (type === "histogram") problems.push(...histogramProblems(name, series));
  return [...new Set(problems)];
}

function histogramProblems(name: string, series: ParsedFamily["series"]): string[] {
  const problems: string[] = [];
  const groups = Map.groupBy(series, ({ labels }) => JSON.stringify([...labels].filter(([label]) => label !== "le")));
  for (const group of groups.values()) {
    const buckets = group.filter((each) => each.name === `${name}_bucket`);
    const count = group.find((each) => each.name === `${name}_count`)?.value;
    if (buckets.at(-1)?.labels.get("le") !== "+Inf") problems.push("no bucket for +Inf");
    if (buckets.at(-1)?.value !== count) problems.push("count and the last bucket differ");
    if (buckets.some(({ value }, index) => value < (buckets[index - 1]?.value ?? 0))) problems.push("buckets shrink");
    if (!group.some((each) => each.name === `${name}_sum`)) problems.push("no sum");
  }
  return problems;
}
