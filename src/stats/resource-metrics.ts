import type { Family, Sample, Stability } from "../metrics/family.ts";
import type { CgroupSample } from "./cgroup-sample.ts";
import type { NodeSample } from "./node-sample.ts";
import { hasRunningContainer } from "./stats-pods.ts";

const container = ["container", "namespace", "pod"];
const pod = ["namespace", "pod"];

/** `/metrics/resource`: scraped by metrics-server. Undefined: could not be measured. Pure. */
export function resourceFamilies(sample: NodeSample | undefined): Family[] {
  const error = [{ labels: [], value: sample === undefined ? 1 : 0 }];
  return [
    ...(sample === undefined ? [] : [...nodeFamilies(sample), ...containerFamilies(sample), ...podFamilies(sample)]),
    gauge("resource_scrape_error", "1 if the statistics are missing, 0 otherwise", [], error),
  ];
}

function nodeFamilies({ machine }: NodeSample): Family[] {
  const { sample, swapTotalBytes, swapFreeBytes } = machine;
  const swapped = [{ labels: [], value: swapTotalBytes - swapFreeBytes, timeMs: sample.timeMs }];
  return [
    counter("node_cpu_usage_seconds_total", "CPU time used by the node, in core-seconds", [], cpu([], sample)),
    gauge("node_memory_working_set_bytes", "Memory working set of the node", [], workingSet([], sample)),
    gauge("node_swap_usage_bytes", "Swap in use on the node", [], swapped, "ALPHA"),
  ];
}

function containerFamilies({ pods }: NodeSample): Family[] {
  const all = pods.flatMap(({ pod: { ref }, containers }) =>
    containers.map(({ container: { name, createdMs }, sample }) => {
      return { labels: [name, ref.namespace, ref.name], sample, createdMs };
    }),
  );
  const of = (samples: (each: (typeof all)[number]) => Sample[]): Sample[] => all.flatMap(samples);
  return [
    gauge(
      "container_start_time_seconds",
      "Start time of the container since unix epoch in seconds",
      container,
      of(({ labels, createdMs }) => [{ labels, value: createdMs / 1000 }]),
    ),
    counter(
      "container_cpu_usage_seconds_total",
      "CPU time used by the container, in core-seconds",
      container,
      of(({ labels, sample }) => cpu(labels, sample)),
    ),
    gauge(
      "container_memory_working_set_bytes",
      "Memory working set of the container",
      container,
      of(({ labels, sample }) => workingSet(labels, sample)),
    ),
    gauge(
      "container_swap_usage_bytes",
      "Swap in use by the container",
      container,
      of(({ labels, sample }) => swap(labels, sample)),
      "ALPHA",
    ),
    gauge(
      "container_swap_limit_bytes",
      "Swap limit of the container",
      container,
      of(({ labels, sample: { memory, timeMs } }) => {
        return memory?.swapLimit === undefined ? [] : [{ labels, value: memory.swapLimit, timeMs }];
      }),
      "ALPHA",
    ),
  ];
}

function podFamilies({ pods }: NodeSample): Family[] {
  const all = pods.flatMap(({ pod: own, sample }) => {
    const { namespace, name } = own.ref;
    return sample === undefined || !hasRunningContainer(own) ? [] : [{ labels: [namespace, name], sample }];
  });
  const of = (samples: (each: (typeof all)[number]) => Sample[]): Sample[] => all.flatMap(samples);
  return [
    counter(
      "pod_cpu_usage_seconds_total",
      "CPU time used by the pod, in core-seconds",
      pod,
      of(({ labels, sample }) => cpu(labels, sample)),
    ),
    gauge(
      "pod_memory_working_set_bytes",
      "Memory working set of the pod",
      pod,
      of(({ labels, sample }) => workingSet(labels, sample)),
    ),
    gauge(
      "pod_swap_usage_bytes",
      "Swap in use by the pod",
      pod,
      of(({ labels, sample }) => swap(labels, sample)),
      "ALPHA",
    ),
  ];
}

function cpu(labels: readonly string[], { cpu: used, timeMs }: CgroupSample): Sample[] {
  return used === undefined ? [] : [{ labels, value: used.usageNanoseconds / 1e9, timeMs }];
}

function workingSet(labels: readonly string[], { memory, timeMs }: CgroupSample): Sample[] {
  return memory === undefined ? [] : [{ labels, value: memory.workingSet, timeMs }];
}

function swap(labels: readonly string[], { memory, timeMs }: CgroupSample): Sample[] {
  return memory === undefined ? [] : [{ labels, value: memory.swap, timeMs }];
}

function counter(name: string, help: string, labels: readonly string[], samples: readonly Sample[]): Family {
  return { name, help, type: "counter", stability: "STABLE", labels, samples };
}

function gauge(
  name: string,
  help: string,
  labels: readonly string[],
  samples: readonly Sample[],
  stability: Stability = "STABLE",
): Family {
  return { name, help, type: "gauge", stability, labels, samples };
}
