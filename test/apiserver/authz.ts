import type { User } from "./authn.ts";

/** What somebody wants to do, as a SubjectAccessReview puts it. */
export interface AccessRequest {
  readonly user: User;
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** Set instead of a resource. */
  readonly path?: string;
}

/** Says yes, or nothing. */
export type Authorizer = (request: AccessRequest) => boolean;

/** `system:masters` may do everything. */
export const masters: Authorizer = ({ user }) => user.groups.includes("system:masters");

/** Why a request is refused, in the real server's words. */
export function refusal(request: AccessRequest): string {
  const { user, verb, group, namespace, path } = request;
  if (path !== undefined) return `User ${JSON.stringify(user.name)} cannot ${verb} path ${JSON.stringify(path)}`;
  const resource = request.subresource === "" ? request.resource : `${request.resource}/${request.subresource}`;
  const where = namespace === "" ? "at the cluster scope" : `in the namespace ${JSON.stringify(namespace)}`;
  return `User ${JSON.stringify(user.name)} cannot ${verb} resource ${JSON.stringify(resource)} in API group ${JSON.stringify(group)} ${where}`;
}
