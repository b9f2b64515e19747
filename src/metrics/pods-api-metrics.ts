import type { Counter } from "./instruments.ts";
import type { Registry } from "./registry.ts";

export type PodResourcesMethod = "list" | "get" | "get_allocatable";

/** Requests to the gRPC APIs of pods. */
export class PodsApiMetrics {
  readonly #all: Counter<["server_api_version"]>;
  readonly #requests: Readonly<Record<PodResourcesMethod, Counter<["server_api_version"]>>>;
  readonly #errors: Readonly<Record<PodResourcesMethod, Counter<["server_api_version"]>>>;
  readonly #dropped: Counter<[]>;

  constructor(registry: Registry) {
    const counter = (name: string, help: string): Counter<["server_api_version"]> =>
      registry.counter(`kubelet_pod_resources_endpoint_${name}`, help, ["server_api_version"]);
    const each = (kind: string, help: string): Record<PodResourcesMethod, Counter<["server_api_version"]>> => ({
      list: counter(`${kind}_list`, `${help} of List`),
      get: counter(`${kind}_get`, `${help} of Get`),
      get_allocatable: counter(`${kind}_get_allocatable`, `${help} of GetAllocatableResources`),
    });
    this.#all = counter("requests_total", "Calls of the pod resources API");
    this.#requests = each("requests", "Calls");
    this.#errors = each("errors", "Failed calls");
    this.#dropped = registry.counter(
      "kubelet_pod_watch_events_dropped_total",
      "Watchers of the pods API dropped for falling behind",
      [],
    );
  }

  /** @param version of the API: `v1` */
  called(version: string, method: PodResourcesMethod): void {
    this.#all.add([version]);
    // Upstream counts calls of the first version only together.
    if (version !== "v1alpha1") this.#requests[method].add([version]);
  }

  failed(version: string, method: PodResourcesMethod): void {
    this.#errors[method].add([version]);
  }

  watcherDropped(): void {
    this.#dropped.add([]);
  }
}
