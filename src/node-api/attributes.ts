/** A request's attributes for an authorizer: the resource is always `nodes`, the name this node's. */
export interface Attributes {
  /** Empty for a method without a verb, which only unrestricted clients may use. */
  readonly verb: string;
  /** In order; one that is allowed suffices. */
  readonly subresources: readonly string[];
}

const verbs: Readonly<Record<string, string>> = {
  POST: "create",
  GET: "get",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};

/**
 * Fine-grained ones first (KEP-2862): a client that may only read pods does not need `proxy`, which includes `exec`.
 */
const byPath: readonly { readonly path: string; readonly subresources: readonly string[] }[] = [
  { path: "/stats", subresources: ["stats"] },
  { path: "/metrics", subresources: ["metrics"] },
  { path: "/logs", subresources: ["log"] },
  { path: "/checkpoint", subresources: ["checkpoint"] },
  { path: "/statusz", subresources: ["statusz"] },
  { path: "/flagz", subresources: ["configz"] },
  { path: "/configz", subresources: ["configz", "proxy"] },
  { path: "/healthz", subresources: ["healthz", "proxy"] },
  { path: "/pods", subresources: ["pods", "proxy"] },
  { path: "/runningpods", subresources: ["pods", "proxy"] },
];

/** @param path decoded, as the router sees it: authorization and routing must use the same path */
export function attributesOf(method: string, path: string): Attributes {
  const entry = byPath.find((candidate) => path === candidate.path || path.startsWith(`${candidate.path}/`));
  return { verb: verbs[method] ?? "", subresources: entry?.subresources ?? ["proxy"] };
}
