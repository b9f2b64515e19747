import type { User } from "./authn.ts";
import { type AccessRequest, type Authorizer, type Rule, ruleAllows } from "./authz.ts";
import { type ApiObject, itemsAt, textAt } from "./objects.ts";
import { referencesOf } from "./references.ts";
import type { Store } from "./store.ts";

const read = ["get", "list", "watch"];

/** Permissions of every node for any object (bootstrappolicy.NodeRules of 1.36, without those with their own rule). */
const nodeRules: readonly Rule[] = [
  { verbs: ["create"], groups: ["authentication.k8s.io"], resources: ["tokenreviews"] },
  {
    verbs: ["create"],
    groups: ["authorization.k8s.io"],
    resources: ["subjectaccessreviews", "localsubjectaccessreviews"],
  },
  { verbs: read, groups: [""], resources: ["services"] },
  { verbs: ["create", "update", "patch"], groups: ["", "events.k8s.io"], resources: ["events"] },
  { verbs: ["create", "delete"], groups: [""], resources: ["pods"] },
  { verbs: ["update", "patch"], groups: [""], resources: ["pods/status"] },
  { verbs: ["create"], groups: [""], resources: ["pods/eviction"] },
  { verbs: ["get"], groups: [""], resources: ["endpoints"] },
  { verbs: ["create", ...read], groups: ["certificates.k8s.io"], resources: ["certificatesigningrequests"] },
  { verbs: ["get"], groups: ["storage.k8s.io"], resources: ["volumeattachments"] },
  { verbs: read, groups: ["storage.k8s.io"], resources: ["csidrivers"] },
  { verbs: read, groups: ["node.k8s.io"], resources: ["runtimeclasses"] },
];

/** The node of a kubelet's user; undefined for other users. */
export function nodeNameOf(user: User): string | undefined {
  if (!user.groups.includes("system:nodes")) return undefined;
  return /^system:node:(?<name>.+)$/.exec(user.name)?.groups?.["name"];
}

/** The node authorizer: permits a kubelet what its node and the pods on it need. */
export class NodeAuthorizer {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  readonly authorize: Authorizer = (request) => {
    const node = nodeNameOf(request.user);
    if (node === undefined || request.path !== undefined) return false;
    switch (request.resource) {
      case "secrets":
      case "configmaps":
        return this.#reading(request) ?? this.#related(node, request);
      case "persistentvolumeclaims":
        return (request.subresource === "status" ? undefined : this.#getting(request)) ?? this.#related(node, request);
      case "persistentvolumes":
        return this.#getting(request) ?? this.#relatedVolume(node, request);
      case "serviceaccounts":
        return this.#serviceAccount(node, request);
      case "leases":
        return this.#own(node, request, "a node lease", "node lease");
      case "csinodes":
        return this.#own(node, request, "a CSINode", "CSINode");
      case "nodes":
        return this.#node(node, request);
      case "pods":
        return this.#pod(node, request);
      case "resourceslices":
        return this.#slice(node, request);
      default:
        return nodeRules.some((rule) => ruleAllows(rule, request));
    }
  };

  #reading({ verb, subresource, namespace }: AccessRequest): string | undefined {
    if (!read.includes(verb)) return "can only read resources of this type";
    if (subresource !== "") return "cannot read subresource";
    return namespace === "" ? "can only read namespaced object of this type" : undefined;
  }

  #getting({ verb, subresource }: AccessRequest): string | undefined {
    if (verb !== "get") return "can only get individual resources of this type";
    return subresource === "" ? undefined : "cannot get subresource";
  }

  #podsOf(node: string): ApiObject[] {
    return this.#store.all("pods").filter((pod) => textAt(pod, "spec.nodeName") === node);
  }

  #related(node: string, { resource, namespace, name }: AccessRequest): true | string {
    if (name === "") return "No Object name found";
    const inNamespace = this.#podsOf(node).filter((pod) => pod.metadata.namespace === namespace);
    if (inNamespace.some((pod) => referencesOf(pod).get(resource)?.has(name) === true)) return true;
    // The pull secrets of a pod's account are readable, too.
    const accounts = inNamespace.map((pod) =>
      this.#store.get("serviceaccounts", `${namespace}/${textAt(pod, "spec.serviceAccountName")}`),
    );
    const isPullSecret = (account: ApiObject | undefined): boolean =>
      itemsAt(account, "imagePullSecrets").some((secret) => secret["name"] === name);
    if (resource === "secrets" && accounts.some(isPullSecret)) return true;
    return `no relationship found between node '${node}' and this object`;
  }

  #relatedVolume(node: string, { name }: AccessRequest): true | string {
    const claims = this.#podsOf(node).flatMap((pod) =>
      [...(referencesOf(pod).get("persistentvolumeclaims") ?? [])].map((claim) =>
        this.#store.get("persistentvolumeclaims", `${pod.metadata.namespace ?? ""}/${claim}`),
      ),
    );
    const isNeeded = claims.some((claim) => claim !== undefined && textAt(claim, "spec.volumeName") === name);
    return isNeeded || `no relationship found between node '${node}' and this object`;
  }

  #serviceAccount(node: string, request: AccessRequest): true | string {
    const isRead = request.verb === "get" && request.subresource === "";
    const isToken = request.verb === "create" && request.subresource === "token" && request.name !== "";
    if (!isRead && !isToken) return "can only create tokens for individual service accounts";
    return this.#related(node, request);
  }

  #own(node: string, request: AccessRequest, one: string, what: string): true | string {
    const { verb, name, namespace, resource, subresource } = request;
    const isVerb = ["get", "create", "update", "patch", "delete"].includes(verb);
    if (!isVerb) return `can only get, create, update, patch, or delete ${one}`;
    if (resource === "leases" && namespace !== "kube-node-lease") {
      return 'can only access leases in the "kube-node-lease" system namespace';
    }
    if (subresource !== "") return `cannot authorize ${what} subresources`;
    return verb === "create" || name === node || `can only access ${what} with the same name as the requesting node`;
  }

  #node(node: string, { verb, subresource, name }: AccessRequest): boolean | string {
    if (subresource === "status") return ["update", "patch"].includes(verb);
    if (subresource !== "") return false;
    if (["create", "update", "patch"].includes(verb)) return true;
    if (!read.includes(verb)) return false;
    const which = name === "" ? "all nodes" : `'${name}'`;
    return name === node || `node '${node}' cannot read ${which}, only its own Node object`;
  }

  #pod(node: string, request: AccessRequest): boolean | string {
    const { verb, subresource, namespace, name, fieldSelector } = request;
    if (!read.includes(verb) || subresource !== "") return nodeRules.some((rule) => ruleAllows(rule, request));
    if (selectsNode(fieldSelector, node)) return true;
    if (verb !== "get") return "can only list/watch pods with spec.nodeName field selector";
    const pod = this.#store.get("pods", `${namespace}/${name}`);
    const isOwn = pod !== undefined && textAt(pod, "spec.nodeName") === node;
    return isOwn || `no relationship found between node '${node}' and this object`;
  }

  #slice(node: string, { verb, subresource, name, fieldSelector }: AccessRequest): true | string {
    if (subresource !== "") return "cannot authorize ResourceSlice subresources";
    if (verb === "create") return true;
    if (["watch", "list", "deletecollection"].includes(verb)) {
      const why = "can only list/watch/deletecollection resourceslices with nodeName field selector";
      return selectsNode(fieldSelector, node) || why;
    }
    const slice = this.#store.get("resourceslices.resource.k8s.io", name);
    const isOwn = slice !== undefined && textAt(slice, "spec.nodeName") === node;
    return isOwn || `no relationship found between node '${node}' and this object`;
  }
}

function selectsNode(fieldSelector: string, node: string): boolean {
  const terms = fieldSelector.split(",");
  return terms.some((term) => term === `spec.nodeName=${node}` || term === `spec.nodeName==${node}`);
}
