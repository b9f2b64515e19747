import type { KubeRequest } from "../../ports/kube-api.ts";
import { Refusal } from "./values.ts";

/** The parsed target of a request. */
export interface ApiCallParts {
  readonly method: KubeRequest["method"];
  /** `pods`; only in a group that has it. */
  readonly resource: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
  readonly query: URLSearchParams;
}

/** Resources by the group and version under which they are served. */
const groups: Readonly<Record<string, readonly string[]>> = {
  "/api/v1": [
    ...["pods", "nodes", "events", "configmaps", "secrets", "services", "serviceaccounts"],
    ...["persistentvolumes", "persistentvolumeclaims"],
  ],
  "/apis/coordination.k8s.io/v1": ["leases"],
  "/apis/node.k8s.io/v1": ["runtimeclasses"],
  "/apis/storage.k8s.io/v1": ["csidrivers", "csinodes", "volumeattachments"],
};

/** Resources without a namespace. */
export const clusterScoped: ReadonlySet<string> = new Set([
  ...["nodes", "runtimeclasses", "persistentvolumes"],
  ...["csidrivers", "csinodes", "volumeattachments"],
]);

/** Parses a path. @throws Refusal (404) for an unknown one */
export function parseRequest({ method, path }: Pick<KubeRequest, "method" | "path">): ApiCallParts {
  const [place = "", search = ""] = path.split("?");
  const base = Object.keys(groups).find((group) => place.startsWith(`${group}/`));
  const parts = place
    .slice((base?.length ?? 0) + 1)
    .split("/")
    .map(decodeURIComponent);
  const namespace = parts[0] === "namespaces" ? parts[1] : undefined;
  const [resource = "", name, subresource] = namespace === undefined ? parts : parts.slice(2);
  if (base === undefined || groups[base]?.includes(resource) !== true) {
    throw new Refusal(404, "NotFound", `the server could not find the requested resource: ${place}`);
  }
  return { method, resource, namespace, name, subresource, query: new URLSearchParams(search) };
}

/** `PATCH pods/status`, for statistics. */
export function describeCall({ method, resource, subresource, name, query }: ApiCallParts): string {
  const verb = query.get("watch") === "true" ? "WATCH" : method === "GET" && name === undefined ? "LIST" : method;
  return `${verb} ${resource}${subresource === undefined ? "" : `/${subresource}`}`;
}
