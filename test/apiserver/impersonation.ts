import { badRequest } from "./api-error.ts";
import { anonymous, type User } from "./authn.ts";
import type { AccessRequest } from "./authz.ts";

/** Raw headers: names and values alternate, and names may repeat. */
type RawHeaders = readonly string[];

const extraPrefix = "impersonate-extra-";
const serviceAccount =
  /^system:serviceaccount:(?<namespace>[a-z0-9](?:[a-z0-9-]*[a-z0-9])?):(?<name>[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)$/;
const authentication = "authentication.k8s.io";

/** Whether a header is for this server only, and must not be forwarded. */
export function isImpersonation(header: string): boolean {
  return /^impersonate-/i.test(header);
}

function extraKey(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}

/** The requested impersonation: headers with lower-case names. */
function askedFor(headers: RawHeaders): [name: string, value: string][] {
  const found: [string, string][] = [];
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const name = (headers[index] ?? "").toLowerCase();
    const value = headers[index + 1] ?? "";
    const isKnown = ["impersonate-user", "impersonate-group", "impersonate-uid"].includes(name);
    if (isKnown || name.startsWith(extraPrefix)) found.push([name, value]);
  }
  return found;
}

function groupsOf(name: string, asked: readonly string[]): string[] {
  const namespace = serviceAccount.exec(name)?.groups?.["namespace"];
  // A service account has implicit groups, unless groups are given.
  const groups =
    asked.length > 0 || namespace === undefined
      ? [...asked]
      : ["system:serviceaccounts", `system:serviceaccounts:${namespace}`];
  const isNobody = name === anonymous.name;
  const says = isNobody ? ["system:unauthenticated"] : ["system:authenticated", "system:unauthenticated"];
  return says.some((each) => groups.includes(each)) ? groups : [...groups, says[0] ?? ""];
}

/**
 * The acting user of a request: its sender, or the impersonated user (`Impersonate-User` and others).
 * @param require throws if an action is not permitted
 * @throws ApiError 400 for groups and others without a user
 */
export function impersonated(user: User, headers: RawHeaders, require: (request: AccessRequest) => void): User {
  const asked = askedFor(headers);
  const all = (header: string): string[] => asked.filter(([name]) => name === header).map(([, value]) => value);
  const name = all("impersonate-user")[0] ?? "";
  const uid = all("impersonate-uid")[0] ?? "";
  const groups = all("impersonate-group");
  const extras = asked
    .filter(([header]) => header.startsWith(extraPrefix))
    .map(([header, value]) => [extraKey(header.slice(extraPrefix.length)), value] as const);
  if (name === "") {
    const said = [...groups, ...extras.map(([, value]) => value), uid].filter((each) => each !== "");
    if (said.length > 0) throw badRequest(`requested [${said.join(" ")}] without impersonating a user`);
    return user;
  }
  const question = { user, verb: "impersonate", namespace: "", subresource: "", fieldSelector: "" };
  const account = serviceAccount.exec(name)?.groups;
  if (account === undefined) require({ ...question, group: "", resource: "users", name });
  else {
    const { namespace = "", name: own = "" } = account;
    require({ ...question, group: "", resource: "serviceaccounts", namespace, name: own });
  }
  for (const each of groups) require({ ...question, group: "", resource: "groups", name: each });
  for (const [key, value] of extras) {
    require({ ...question, group: authentication, resource: "userextras", subresource: key, name: value });
  }
  if (uid !== "") require({ ...question, group: authentication, resource: "uids", name: uid });
  const extra = Map.groupBy(extras, ([key]) => key);
  return {
    name,
    groups: groupsOf(name, groups),
    ...(uid === "" ? {} : { uid }),
    ...(extra.size === 0
      ? {}
      : { extra: Object.fromEntries([...extra].map(([key, values]) => [key, values.map(([, value]) => value)])) }),
  };
}
