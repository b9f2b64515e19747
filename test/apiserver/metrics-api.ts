import { setTimeout as sleep } from "node:timers/promises";
import { ApiError, notFound } from "./api-error.ts";
import type { KubeletProxy } from "./kubelet-proxy.ts";
import { type ApiObject, type Fields, textAt, timestamp } from "./objects.ts";
import type { RequestInfo } from "./request-info.ts";
import type { Store } from "./store.ts";

/** One container, or a node, at one scrape. */
interface Point {
  readonly timeMs: number;
  readonly cpuSeconds: number;
  readonly memoryBytes: number;
}

/** By name: `""` for the node, `<namespace>/<pod>/<container>` for containers. */
type Scrape = ReadonlyMap<string, Point>;

/** Between the two scrapes of a rate. */
const windowMs = 1_200;
const series = /^(node|container)_(cpu_usage_seconds_total|memory_working_set_bytes)(?:\{(.*)\})? (\S+) (\d+)$/gmu;

/** `metrics.k8s.io` like metrics-server's, but scraped from kubelets on request. */
export class MetricsApi {
  readonly #store: Store;
  readonly #kubelets: KubeletProxy;

  constructor(store: Store, kubelets: KubeletProxy) {
    this.#store = store;
    this.#kubelets = kubelets;
  }

  /** Undefined for another group. @throws ApiError 404 for an unmeasured object */
  async answer(info: RequestInfo): Promise<Fields | undefined> {
    if (info.group !== "metrics.k8s.io") return undefined;
    if (info.resource === "nodes") return await this.#nodes(info);
    if (info.resource === "pods") return await this.#pods(info);
    throw new ApiError(404, "NotFound", "the server could not find the requested resource");
  }

  async #nodes(info: RequestInfo): Promise<Fields> {
    const items = (await this.#scrapes()).flatMap(({ node, before, now }): Fields[] => {
      const usage = usageOf(before.get(""), now.get(""));
      return usage === undefined ? [] : [{ ...head(node, "", "NodeMetrics"), ...usage }];
    });
    return answerOf(info, "NodeMetricsList", items);
  }

  async #pods(info: RequestInfo): Promise<Fields> {
    const pods = new Map<string, { readonly time: Fields; readonly containers: Fields[] }>();
    for (const { before, now } of await this.#scrapes()) {
      for (const [key, point] of now) {
        const [namespace = "", pod = "", container = ""] = key.split("/");
        const measured = usageOf(before.get(key), point);
        if (key === "" || measured === undefined || (info.namespace !== "" && info.namespace !== namespace)) continue;
        const { usage, ...time } = measured;
        const entry = pods.get(`${namespace}/${pod}`) ?? { time, containers: [] as Fields[] };
        entry.containers.push({ name: container, usage });
        pods.set(`${namespace}/${pod}`, entry);
      }
    }
    const items = [...pods].map(([key, { time, containers }]): Fields => {
      const [namespace = "", pod = ""] = key.split("/");
      return { ...head(pod, namespace, "PodMetrics"), ...time, containers };
    });
    return answerOf(info, "PodMetricsList", items);
  }

  async #scrapes(): Promise<{ readonly node: string; readonly before: Scrape; readonly now: Scrape }[]> {
    const nodes = this.#store.all("nodes").map((node: ApiObject) => textAt(node, "metadata.name"));
    const before = await Promise.all(nodes.map((node) => this.#scrape(node)));
    await sleep(windowMs);
    const now = await Promise.all(nodes.map((node) => this.#scrape(node)));
    return nodes.map((node, index) => ({ node, before: before[index] ?? new Map(), now: now[index] ?? new Map() }));
  }

  async #scrape(node: string): Promise<Scrape> {
    const text = await this.#kubelets.read(node, "/metrics/resource");
    const points = new Map<string, Point>();
    for (const [, , metric, labels = "", value, time] of text.matchAll(series)) {
      const label = (name: string): string => new RegExp(`(?:^|,)${name}="([^"]*)"`, "u").exec(labels)?.[1] ?? "";
      const key = labels === "" ? "" : `${label("namespace")}/${label("pod")}/${label("container")}`;
      const point = points.get(key) ?? { timeMs: 0, cpuSeconds: 0, memoryBytes: 0 };
      const isCpu = metric === "cpu_usage_seconds_total";
      points.set(key, {
        ...point,
        ...(isCpu ? { cpuSeconds: Number(value), timeMs: Number(time) } : { memoryBytes: Number(value) }),
      });
    }
    return points;
  }
}

function usageOf(before: Point | undefined, now: Point | undefined) {
  if (before === undefined || now === undefined || now.timeMs <= before.timeMs) return undefined;
  const passedMs = now.timeMs - before.timeMs;
  const nanoCores = Math.round(((now.cpuSeconds - before.cpuSeconds) * 1e12) / passedMs);
  return {
    timestamp: timestamp(now.timeMs),
    window: `${passedMs / 1000}s`,
    usage: { cpu: `${nanoCores}n`, memory: `${Math.round(now.memoryBytes / 1024)}Ki` },
  };
}

function head(name: string, namespace: string, kind: string): Fields {
  return { kind, apiVersion: "metrics.k8s.io/v1beta1", metadata: { name, ...(namespace !== "" && { namespace }) } };
}

function answerOf({ name, resource }: RequestInfo, kind: string, items: readonly Fields[]): Fields {
  if (name === "") return { kind, apiVersion: "metrics.k8s.io/v1beta1", metadata: {}, items };
  const found = items.find((item) => (item["metadata"] as Fields)["name"] === name);
  if (found === undefined) throw notFound({ group: "metrics.k8s.io", resource, name });
  return found;
}
