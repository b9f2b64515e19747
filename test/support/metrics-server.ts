/** A data point of metrics-server. */
export interface MetricsPoint {
  readonly startTimeMs: number | undefined;
  readonly timeMs: number;
  /** Core-seconds. */
  readonly cpuSeconds: number;
  readonly memoryBytes: number;
}

/** The result of one scrape by metrics-server. */
export interface MetricsBatch {
  readonly node: MetricsPoint | undefined;
  /** By `namespace/pod`, then by container. */
  readonly pods: ReadonlyMap<string, ReadonlyMap<string, MetricsPoint>>;
}

interface Draft {
  startTimeMs?: number;
  timeMs?: number;
  cpuSeconds?: number;
  memoryBytes?: number;
}

/**
 * Parses `/metrics/resource` by the rules of metrics-server's scraper: names and labels are matched by bytes, times are
 * in the lines, and a pod is dropped if one of its containers has no CPU or memory value, or 0.
 */
export function decodeBatch(text: string): MetricsBatch {
  const node: Draft = {};
  const pods = new Map<string, Map<string, Draft>>();
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const [series = "", value = "", time] = splitLine(line);
    const number = Number(value);
    const at = time === undefined ? undefined : Number(time);
    const containerOf = (): Draft => {
      const key = `${label(series, "namespace")}/${label(series, "pod")}`;
      const containers = pods.get(key) ?? new Map<string, Draft>();
      pods.set(key, containers);
      const name = label(series, "container");
      const container = containers.get(name) ?? {};
      containers.set(name, container);
      return container;
    };
    if (isNamed(series, "node_cpu_usage_seconds_total")) take(node, "cpuSeconds", number, at);
    else if (isNamed(series, "node_memory_working_set_bytes")) take(node, "memoryBytes", number, at);
    else if (isNamed(series, "container_cpu_usage_seconds_total")) take(containerOf(), "cpuSeconds", number, at);
    else if (isNamed(series, "container_memory_working_set_bytes")) take(containerOf(), "memoryBytes", number, at);
    else if (isNamed(series, "container_start_time_seconds")) containerOf().startTimeMs = number * 1000;
  }
  return {
    node: complete(node),
    pods: new Map(
      [...pods].flatMap(([key, containers]) => {
        const points = [...containers].map(([name, draft]) => [name, complete(draft)] as const);
        const whole = points.flatMap(([name, point]) => (point === undefined ? [] : [[name, point] as const]));
        return whole.length === points.length ? [[key, new Map(whole)]] : [];
      }),
    ),
  };
}

function splitLine(line: string): string[] {
  const end = line.lastIndexOf("}") + 1;
  const [first = "", ...rest] = line.slice(end).split(" ");
  return [line.slice(0, end) + first, ...rest];
}

function isNamed(series: string, name: string): boolean {
  return series === name || series.startsWith(`${name}{`);
}

function label(series: string, name: string): string {
  return new RegExp(`[{,]${name}="([^"]*)"`, "u").exec(series)?.[1] ?? "";
}

function take(draft: Draft, field: "cpuSeconds" | "memoryBytes", value: number, timeMs: number | undefined): void {
  draft[field] = value;
  // The CPU sample's time determines rates.
  if (timeMs !== undefined && (field === "cpuSeconds" || draft.timeMs === undefined)) draft.timeMs = timeMs;
}

function complete({ startTimeMs, timeMs, cpuSeconds, memoryBytes }: Draft): MetricsPoint | undefined {
  if (!timeMs || !cpuSeconds || !memoryBytes) return undefined;
  return { startTimeMs, timeMs, cpuSeconds, memoryBytes };
}
