import type { ApiRequest, ApiResponse } from "../ports/api-server.ts";
import type { Forward, NodeHandler } from "../ports/node-server.ts";
import { defaultBounds } from "./buckets.ts";
import type { Registry } from "./registry.ts";

/** Known paths; anything else is `other`, so that clients cannot create unlimited series. */
const buckets = new Set([
  "attach",
  "checkpoint",
  "configz",
  "containerLogs",
  "debug",
  "exec",
  "flagz",
  "healthz",
  "logs",
  "metrics",
  "metrics/cadvisor",
  "metrics/probes",
  "metrics/resource",
  "metrics/slis",
  "pods",
  "portForward",
  "run",
  "runningpods",
  "stats",
  "statusz",
]);
const methods = new Set(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]);
const longRunning = new Set(["exec", "attach", "portForward", "debug"]);

type ServerType = "readonly" | "readwrite";

/** Requests to the kubelet's API, and their duration. */
export class HttpMetrics {
  readonly #clock: { monotonic(): number };
  readonly #requests;
  readonly #seconds;
  readonly #inFlight;
  readonly #sockets;

  constructor(registry: Registry, clock: { monotonic(): number }) {
    this.#clock = clock;
    const labels = ["method", "path", "server_type", "long_running"] as const;
    this.#requests = registry.counter("kubelet_http_requests_total", "Requests to the kubelet API", labels);
    this.#seconds = registry.histogram(
      "kubelet_http_requests_duration_seconds",
      "Duration of requests to the kubelet API",
      labels,
      defaultBounds,
    );
    this.#inFlight = registry.gauge("kubelet_http_inflight_requests", "Requests in flight", labels);
    this.#sockets = registry.counter("kubelet_websocket_streaming_requests_total", "Streams requested by WebSocket", [
      "subresource",
    ]);
  }

  /** Counts the requests of a handler. */
  measured(handler: NodeHandler): NodeHandler {
    return async (request) => {
      const [, name = ""] = request.path.split("/");
      const isSocket = request.upgrade && (request.headers["upgrade"] ?? "").toLowerCase() === "websocket";
      if (isSocket && longRunning.has(name) && name !== "debug") this.#sockets.add([name.toLowerCase()]);
      return await this.#measure("readwrite", request, () => handler(request));
    };
  }

  /** Counts the requests of the read-only API's handler. */
  measuredReadOnly(handler: NodeHandler): NodeHandler {
    return async (request) => await this.#measure("readonly", request, () => handler(request));
  }

  async #measure<T extends ApiResponse | Forward>(
    server: ServerType,
    { method, path }: ApiRequest,
    answer: () => Promise<T>,
  ): Promise<T> {
    const bucket = pathBucket(path);
    const isLong = longRunning.has(bucket);
    const labels = [methods.has(method) ? method : "other", bucket, server, `${isLong}`] as const;
    const beganMs = this.#clock.monotonic();
    this.#requests.add(labels);
    this.#inFlight.add(labels, 1);
    try {
      return await answer();
    } finally {
      this.#inFlight.add(labels, -1);
      this.#seconds.observe(labels, (this.#clock.monotonic() - beganMs) / 1000);
    }
  }
}

/** The first part of a path, of metrics also the second. */
export function pathBucket(path: string): string {
  const [, first = "", second = ""] = path.split("/");
  const bucket = first === "metrics" && second !== "" ? `${first}/${second}` : first;
  return buckets.has(bucket) ? bucket : "other";
}
