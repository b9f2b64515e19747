import { badRequest, invalid } from "./api-error.ts";
import type { User } from "./authn.ts";
import { type AccessRequest, rulesOf } from "./authz.ts";
import { type Fields, fieldsAt, listAt, textAt, timestamp } from "./objects.ts";

export interface Reviewer {
  /** @returns the refusal; undefined: permitted */
  readonly authorize: (request: AccessRequest) => string | undefined;
  /** A token's user and audiences. */
  readonly token: (
    token: string,
    audiences: readonly string[],
  ) => { user: User; audiences: readonly string[] } | undefined;
}

function userInfo(user: User): Fields {
  const { name, uid, groups, extra } = user;
  return {
    username: name,
    ...(uid === undefined ? {} : { uid }),
    groups,
    ...(extra === undefined ? {} : { extra: { ...extra } }),
  };
}

function accessOf(spec: Fields, user: User): AccessRequest {
  const attributes = fieldsAt(spec, "resourceAttributes");
  const path = textAt(spec, "nonResourceAttributes.path");
  const verb = textAt(attributes, "verb") || textAt(spec, "nonResourceAttributes.verb");
  return {
    user,
    verb,
    group: textAt(attributes, "group"),
    resource: textAt(attributes, "resource"),
    subresource: textAt(attributes, "subresource"),
    namespace: textAt(attributes, "namespace"),
    name: textAt(attributes, "name"),
    fieldSelector: "",
    ...(path === "" ? {} : { path }),
  };
}

function subjectOf(spec: Fields): User {
  const user = { name: textAt(spec, "user"), groups: listAt(spec, "groups").map(String) };
  const uid = textAt(spec, "uid");
  return uid === "" ? user : { ...user, uid };
}

/**
 * Handles a review, which is created but never stored.
 * @param resource the plural, such as `subjectaccessreviews`
 * @returns undefined for other resources
 */
export function answerReview(resource: string, review: Fields, caller: User, reviewer: Reviewer): Fields | undefined {
  const spec = fieldsAt(review, "spec");
  const answered = (status: Fields): Fields => ({ ...review, metadata: { creationTimestamp: null }, status });
  const access = (user: User): Fields => {
    const refused = reviewer.authorize(accessOf(spec, user));
    return answered(refused === undefined ? { allowed: true } : { allowed: false, reason: refused });
  };
  switch (resource) {
    case "subjectaccessreviews":
    case "localsubjectaccessreviews":
      if (textAt(spec, "user") === "" && listAt(spec, "groups").length === 0) {
        const problem = 'Invalid value: "": at least one of user or group must be specified';
        throw invalid({ group: "authorization.k8s.io", resource: "" }, "", [["spec.user", problem]]);
      }
      return access(subjectOf(spec));
    case "selfsubjectaccessreviews":
      return access(caller);
    case "selfsubjectrulesreviews":
      if (textAt(spec, "namespace") === "") throw badRequest("no namespace on request");
      return answered(rulesOf(caller));
    case "selfsubjectreviews":
      return { ...answered({ userInfo: userInfo(caller) }), metadata: { creationTimestamp: timestamp() } };
    case "tokenreviews": {
      const audiences = listAt(spec, "audiences").map(String);
      const found = reviewer.token(textAt(spec, "token"), audiences);
      if (found === undefined) return answered({ user: {}, error: "invalid bearer token" });
      return answered({ authenticated: true, user: userInfo(found.user), audiences: found.audiences });
    }
    default:
      return undefined;
  }
}
