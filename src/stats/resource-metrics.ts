import type { Family, Sample, Stability } from "../metrics/family.ts";
import type { CgroupSample } from "./cgroup-sample.ts";
import type { NodeSample } from "./node-sample.ts";

const container = ["container", "namespace", "pod"];
const pod = ["namespace", "pod"];

/** `/metrics/resource`: what metrics-server scrapes. Undefined: it could not be measured. Pure. */
export function resourceFamilies(sample: NodeSample | undefined): Family[] {
  const error = [{ labels: [], value: sample === undefined ? 1 : 0 }];
  return [
    ...(sample === undefined ? [] : [...nodeFamilies(sample), ...containerFamilies(sample), ...podFamilies(sample)]),
    gauge("resource_scrape_error", "1 if the figures could not be had, 0 otherwise", [], error),
  ];
}

function nodeFamilies({ machine }: NodeSample): Family[] {
  const { sample, swapTotalBytes, swapFreeBytes } = machine;
  const swapped = [{ labels: [], value: swapTotalBytes - swapFreeBytes, timeMs: sample.timeMs }];
  return [
    counter("node_cpu_usage_seconds_total", "CPU time that the node has used, in core-seconds", [], cpu([], sample)),
    gauge("node_memory_working_set_bytes", "Memory of the node that is in use", [], workingSet([], sample)),
    gauge("node_swap_usage_bytes", "Swap of the node that is in use", [], swapped, "ALPHA"),
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
      "When the container was made, in seconds since 1970",
      container,
      of(({ labels, createdMs }) => [{ labels, value: createdMs / 1000 }]),
    ),
    counter(
      "container_cpu_usage_seconds_total",
      "CPU time that the container has used, in core-seconds",
      container,
      of(({ labels, sample }) => cpu(labels, sample)),
    ),
    gauge(
      "container_memory_working_set_bytes",
      "Memory of the container that is in use",
      container,
      of(({ labels, sample }) => workingSet(labels, sample)),
    ),
    gauge(
      "container_swap_usage_bytes",
      "Swap of the container that is in use",
      container,
      of(({ labels, sample }) => swap(labels, sample)),
      "ALPHA",
    ),
    gauge(
      "container_swap_limit_bytes",
      "Swap that the container may use",
      container,
      of(({ labels, sample: { memory, timeMs } }) => {
        return memory?.swapLimit === undefined ? [] : [{ labels, value: memory.swapLimit, timeMs }];
      }),
      "ALPHA",
    ),
  ];
}

function podFamilies({ pods }: NodeSample): Family[] {
  const all = pods.flatMap(({ pod: { ref }, sample }) => {
    return sample === undefined ? [] : [{ labels: [ref.namespace, ref.name], sample }];
  });
  const of = (samples: (each: (typeof all)[number]) => Sample[]): Sample[] => all.flatMap(samples);
  return [
    counter(
      "pod_cpu_usage_seconds_total",
      "CPU time that the pod has used, in core-seconds",
      pod,
      of(({ labels, sample }) => cpu(labels, sample)),
    ),
    gauge(
      "pod_memory_working_set_bytes",
      "Memory of the pod that is in use",
      pod,
      of(({ labels, sample }) => workingSet(labels, sample)),
    ),
    gauge(
      "pod_swap_usage_bytes",
      "Swap of the pod that is in use",
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
