import type { User } from "./authn.ts";
import type { Fields } from "./objects.ts";

/** A requested action, like a SubjectAccessReview's. */
export interface AccessRequest {
  readonly user: User;
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  /** `""`: all, or not yet known. */
  readonly name: string;
  readonly fieldSelector: string;
  /** Set instead of a resource. */
  readonly path?: string;
}

/** Permits (`true`) or has no opinion; a text gives the reason for that. */
export type Authorizer = (request: AccessRequest) => boolean | string;

/** A role's rule: every verb on every resource (`pods`, `pods/status`) of every group. */
export interface Rule {
  readonly verbs: readonly string[];
  readonly groups: readonly string[];
  readonly resources: readonly string[];
}

export function ruleAllows(rule: Rule, { verb, group, resource, subresource }: AccessRequest): boolean {
  const full = subresource === "" ? resource : `${resource}/${subresource}`;
  return rule.verbs.includes(verb) && rule.groups.includes(group) && rule.resources.includes(full);
}

/** `system:masters` may do everything. */
export const masters: Authorizer = ({ user }) => user.groups.includes("system:masters");

const publicPaths = /^\/(?:version|healthz|livez|readyz)(?:\/|$)/;
const discoveryPaths = /^\/(?:api|apis|openapi)(?:\/|$)/;

/** Everybody may check the server's health; authenticated users may also ask about themselves. */
export const everybody: Authorizer = ({ user, path, verb, resource }) => {
  if (path !== undefined && verb === "get" && publicPaths.test(path)) return true;
  if (!user.groups.includes("system:authenticated")) return false;
  if (path !== undefined) return verb === "get" && discoveryPaths.test(path);
  return verb === "create" && resource.startsWith("selfsubject");
};

const bootstrapRule: Rule = {
  verbs: ["create", "get", "list", "watch"],
  groups: ["certificates.k8s.io"],
  resources: ["certificatesigningrequests"],
};

/** Nodes without a certificate may request one (ClusterRole system:node-bootstrapper). */
export const bootstrappers: Authorizer = (request) =>
  request.user.groups.includes("system:bootstrappers") && ruleAllows(bootstrapRule, request);

/** The refusal of a request, in the real server's words. */
export function refusal(request: AccessRequest, reasons: readonly string[] = []): string {
  const { user, verb, group, namespace, path } = request;
  const who = `User ${JSON.stringify(user.name)}`;
  if (path !== undefined) return `${who} cannot ${verb} path ${JSON.stringify(path)}`;
  const resource = request.subresource === "" ? request.resource : `${request.resource}/${request.subresource}`;
  const where = namespace === "" ? "at the cluster scope" : `in the namespace ${JSON.stringify(namespace)}`;
  const said = `${who} cannot ${verb} resource ${JSON.stringify(resource)} in API group ${JSON.stringify(group)} ${where}`;
  return [said, ...reasons].join(": ");
}

/** A user's rules for a SelfSubjectRulesReview. Excludes nodes and a test's authorizers, which decide by request. */
export function rulesOf({ groups }: User): Fields {
  const isMaster = groups.includes("system:masters");
  const isKnown = groups.includes("system:authenticated");
  const reviews = ["selfsubjectaccessreviews", "selfsubjectrulesreviews"];
  const resourceRules = [
    ...(isMaster ? [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }] : []),
    ...(isKnown ? [{ verbs: ["create"], apiGroups: ["authorization.k8s.io"], resources: reviews }] : []),
    ...(isKnown
      ? [{ verbs: ["create"], apiGroups: ["authentication.k8s.io"], resources: ["selfsubjectreviews"] }]
      : []),
    ...(groups.includes("system:bootstrappers") ? [bootstrapRule] : []).map((rule) => ({
      verbs: rule.verbs,
      apiGroups: rule.groups,
      resources: rule.resources,
    })),
  ];
  const paths = ["/healthz", "/livez", "/readyz", "/version", ...(isKnown ? ["/api", "/apis", "/openapi"] : [])];
  const nonResourceRules = [
    ...(isMaster ? [{ verbs: ["*"], nonResourceURLs: ["*"] }] : []),
    { verbs: ["get"], nonResourceURLs: paths.flatMap((path) => [path, `${path}/*`]) },
  ];
  const evaluationError = "what nodes may, and what a test allows, is not told as rules";
  return { resourceRules, nonResourceRules, incomplete: !isMaster, ...(isMaster ? {} : { evaluationError }) };
}
