import type { User } from "./authn.ts";

/** What somebody wants to do, as a SubjectAccessReview puts it. */
export interface AccessRequest {
  readonly user: User;
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  /** `""`: all, or not known yet. */
  readonly name: string;
  readonly fieldSelector: string;
  /** Set instead of a resource. */
  readonly path?: string;
}

/** Says yes (`true`), or nothing; a text is why it does not say yes. */
export type Authorizer = (request: AccessRequest) => boolean | string;

/** What a role allows: every verb on every resource (`pods`, `pods/status`) of every group. */
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

/** What everybody may: see whether the server lives, and, once it is known who they are, ask about themselves. */
export const everybody: Authorizer = ({ user, path, verb, resource }) => {
  if (path !== undefined && verb === "get" && publicPaths.test(path)) return true;
  if (!user.groups.includes("system:authenticated")) return false;
  if (path !== undefined) return verb === "get" && discoveryPaths.test(path);
  return verb === "create" && resource.startsWith("selfsubject");
};

/** Nodes that have no certificate yet may ask for one (ClusterRole system:node-bootstrapper). */
export const bootstrappers: Authorizer = (request) =>
  request.user.groups.includes("system:bootstrappers") &&
  ruleAllows(
    {
      verbs: ["create", "get", "list", "watch"],
      groups: ["certificates.k8s.io"],
      resources: ["certificatesigningrequests"],
    },
    request,
  );

/** Why a request is refused, in the real server's words. */
export function refusal(request: AccessRequest, reasons: readonly string[] = []): string {
  const { user, verb, group, namespace, path } = request;
  const who = `User ${JSON.stringify(user.name)}`;
  if (path !== undefined) return `${who} cannot ${verb} path ${JSON.stringify(path)}`;
  const resource = request.subresource === "" ? request.resource : `${request.resource}/${request.subresource}`;
  const where = namespace === "" ? "at the cluster scope" : `in the namespace ${JSON.stringify(namespace)}`;
  const said = `${who} cannot ${verb} resource ${JSON.stringify(resource)} in API group ${JSON.stringify(group)} ${where}`;
  return [said, ...reasons].join(": ");
}
