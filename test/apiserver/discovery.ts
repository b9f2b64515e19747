import { catalog } from "./catalog.ts";
import type { Fields } from "./objects.ts";
import { apiVersionOf, type Resource } from "./resource.ts";

/** Resources that are served without being stored. */
export interface VirtualResource {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
  /** Default: `create`. */
  readonly verbs?: readonly string[];
}

export const virtualResources: readonly VirtualResource[] = [
  ...["tokenreviews:TokenReview", "selfsubjectreviews:SelfSubjectReview"].map((each) =>
    virtual("authentication.k8s.io", each, false),
  ),
  ...[
    "subjectaccessreviews:SubjectAccessReview",
    "selfsubjectaccessreviews:SelfSubjectAccessReview",
    "selfsubjectrulesreviews:SelfSubjectRulesReview",
  ].map((each) => virtual("authorization.k8s.io", each, false)),
  virtual("authorization.k8s.io", "localsubjectaccessreviews:LocalSubjectAccessReview", true),
  { ...virtual("metrics.k8s.io", "nodes:NodeMetrics", false), version: "v1beta1", verbs: ["get", "list"] },
  { ...virtual("metrics.k8s.io", "pods:PodMetrics", true), version: "v1beta1", verbs: ["get", "list"] },
];

function virtual(group: string, names: string, namespaced: boolean): VirtualResource {
  const [plural = "", kind = ""] = names.split(":");
  return { group, version: "v1", plural, kind, namespaced };
}

const storedVerbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/** Subresources that are created or connected to instead of read and updated. */
const subresourceVerbs: Readonly<Record<string, readonly string[]>> = {
  binding: ["create"],
  eviction: ["create"],
  token: ["create"],
  log: ["get"],
  exec: ["create", "get"],
  attach: ["create", "get"],
  portforward: ["create", "get"],
  proxy: ["create", "delete", "get", "patch", "update"],
};
const subresourceKinds: Readonly<Record<string, Fields>> = {
  binding: { kind: "Binding" },
  eviction: { kind: "Eviction", group: "policy", version: "v1" },
  token: { kind: "TokenRequest", group: "authentication.k8s.io", version: "v1" },
  exec: { kind: "PodExecOptions" },
  attach: { kind: "PodAttachOptions" },
  portforward: { kind: "PodPortForwardOptions" },
};

function described(resource: Resource): Fields[] {
  const { plural, singular, kind, namespaced, shortNames } = resource;
  const short = shortNames.length === 0 ? {} : { shortNames };
  const subresources = resource.subresources.map((each): Fields => ({
    name: `${plural}/${each}`,
    singularName: "",
    namespaced,
    kind,
    ...subresourceKinds[each],
    verbs: subresourceVerbs[each] ?? ["get", "patch", "update"],
  }));
  return [{ name: plural, singularName: singular, namespaced, kind, verbs: storedVerbs, ...short }, ...subresources];
}

function groups(): Map<string, string> {
  return new Map(
    [...catalog, ...virtualResources].filter(({ group }) => group !== "").map((each) => [each.group, each.version]),
  );
}

/** `APIResourceList` of a group and version; undefined if unknown. */
function resourceList(group: string, version: string): Fields | undefined {
  const isOf = (each: { readonly group: string; readonly version: string }): boolean =>
    each.group === group && each.version === version;
  const stored = catalog.filter(isOf).flatMap(described);
  const answered = virtualResources.filter(isOf).map(({ plural, kind, namespaced, verbs = ["create"] }) => ({
    name: plural,
    singularName: kind.toLowerCase(),
    namespaced,
    kind,
    verbs,
  }));
  if (stored.length + answered.length === 0) return undefined;
  return {
    kind: "APIResourceList",
    apiVersion: "v1",
    groupVersion: apiVersionOf({ group, version }),
    resources: [...stored, ...answered],
  };
}

function apiGroup(name: string, version: string): Fields {
  const preferred = { groupVersion: `${name}/${version}`, version };
  return { name, versions: [preferred], preferredVersion: preferred };
}

/** Serves the discovery paths; undefined for every other path. */
export function discover(path: string): Fields | undefined {
  const parts = path.split("/").filter((part) => part !== "");
  if (path === "/version") {
    return { major: "1", minor: "36", gitVersion: "v1.36.2", platform: "linux/amd64", goVersion: "none" };
  }
  if (parts[0] === "api" && parts.length === 1) {
    return { kind: "APIVersions", versions: ["v1"], serverAddressByClientCIDRs: [] };
  }
  if (parts[0] === "api" && parts.length === 2) return resourceList("", parts[1] ?? "");
  if (parts[0] !== "apis") return undefined;
  const [, group, version] = parts;
  if (group === undefined) {
    return {
      kind: "APIGroupList",
      apiVersion: "v1",
      groups: [...groups()].map(([name, each]) => apiGroup(name, each)),
    };
  }
  const known = groups().get(group);
  if (known === undefined || parts.length > 3) return undefined;
  if (version === undefined) return { kind: "APIGroup", apiVersion: "v1", ...apiGroup(group, known) };
  return resourceList(group, version);
}
