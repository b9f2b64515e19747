import { type ErrorSubject, forbidden } from "./api-error.ts";
import { nodeNameOf } from "./node-authorizer.ts";
import { type ApiObject, at, draftOf, type Fields, fieldsAt, itemsAt, sameJson, textAt } from "./objects.ts";
import { readRequest } from "./pkcs10.ts";
import { referencesOf } from "./references.ts";
import type { Admission, Change } from "./registry.ts";
import type { Store } from "./store.ts";

/** Labels in Kubernetes' domains that a kubelet may set on its node (kubeletapis.IsKubeletLabel). */
const kubeletLabels = new Set([
  "kubernetes.io/hostname",
  "kubernetes.io/os",
  "kubernetes.io/arch",
  "beta.kubernetes.io/os",
  "beta.kubernetes.io/arch",
  "beta.kubernetes.io/instance-type",
  "node.kubernetes.io/instance-type",
  "topology.kubernetes.io/zone",
  "topology.kubernetes.io/region",
  "failure-domain.beta.kubernetes.io/zone",
  "failure-domain.beta.kubernetes.io/region",
]);

/** Names of resources in messages. */
const spoken: Readonly<Record<string, string>> = { serviceaccounts: "service accounts" };

function isWithin(label: string, parent: string): boolean {
  const domain = label.includes("/") ? (label.split("/")[0] ?? "") : "";
  return domain === parent || domain.endsWith(`.${parent}`);
}

const isRestrictedLabel = (label: string): boolean => isWithin(label, "node-restriction.kubernetes.io");

function isForbiddenLabel(label: string): boolean {
  if (isRestrictedLabel(label)) return true;
  if (isWithin(label, "kubelet.kubernetes.io") || isWithin(label, "node.kubernetes.io")) return false;
  return (isWithin(label, "kubernetes.io") || isWithin(label, "k8s.io")) && !kubeletLabels.has(label);
}

function forbiddenLabels(draft: Fields, old: ApiObject | undefined): string[] {
  const [now, before] = [fieldsAt(draft, "metadata.labels"), fieldsAt(old, "metadata.labels")];
  const names = new Set([...Object.keys(now), ...Object.keys(before)]);
  return [...names].filter((name) => now[name] !== before[name] && isForbiddenLabel(name)).toSorted();
}

/**
 * The NodeRestriction admission: a kubelet may change its own node, the status of its own pods, and its own mirror
 * pods.
 */
export class NodeRestriction {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  readonly admit: Admission = (change) => {
    const node = nodeNameOf(change.user);
    if (node === undefined) return;
    const why = this.#objection(node, change);
    if (why === undefined) return;
    const { resource, name } = change.target;
    const subject: ErrorSubject = { group: resource.group, resource: resource.plural, name };
    throw forbidden(subject, why);
  };

  #objection(node: string, change: Change): string | undefined {
    switch (change.target.resource.plural) {
      case "pods":
        return this.#pod(node, change);
      case "nodes":
        return this.#node(node, change);
      case "persistentvolumeclaims":
        return this.#claim(node, change);
      case "leases":
        return change.target.name === node
          ? undefined
          : "can only access node lease with the same name as the requesting node";
      case "csinodes":
        return change.target.name === node
          ? undefined
          : `can only access CSINode with the same name as the requesting node`;
      case "resourceslices":
        return this.#slice(node, change);
      case "certificatesigningrequests":
        return this.#certificate(node, change);
      default:
        return undefined;
    }
  }

  #pod(node: string, { operation, target, draft, old }: Change): string | undefined {
    const quoted = JSON.stringify(node);
    const isOwn = textAt(old, "spec.nodeName") === node;
    if (target.subresource === "status") {
      if (!isOwn) return `node ${quoted} can only update pod status for pods with spec.nodeName set to itself`;
      const kept = sameJson(at(draft, "metadata.labels") ?? {}, old?.metadata.labels ?? {});
      return kept ? undefined : `node ${quoted} cannot update labels through pod status`;
    }
    if (operation === "delete") {
      return isOwn ? undefined : `node ${quoted} can only delete pods with spec.nodeName set to itself`;
    }
    if (operation === "update" || draft === undefined) {
      return `unexpected operation "UPDATE", node ${quoted} can only create and delete mirror pods`;
    }
    return this.#mirrorPod(node, draft);
  }

  #mirrorPod(node: string, pod: Fields): string | undefined {
    const quoted = JSON.stringify(node);
    const annotation = "kubernetes.io/config.mirror";
    if (fieldsAt(pod, "metadata.annotations")[annotation] === undefined) {
      return `pod does not have ${JSON.stringify(annotation)} annotation, node ${quoted} can only create mirror pods`;
    }
    if (textAt(pod, "spec.nodeName") !== node) {
      return `node ${quoted} can only create pods with spec.nodeName set to itself`;
    }
    const [owner, ...others] = itemsAt(pod, "metadata.ownerReferences");
    if (owner === undefined || others.length > 0 || owner["kind"] !== "Node" || owner["name"] !== node) {
      return `node ${quoted} can only create pods with an owner reference set to itself`;
    }
    if (owner["controller"] !== true) {
      return `node ${quoted} can only create pods with a controller owner reference set to itself`;
    }
    if (owner["blockOwnerDeletion"] === true) {
      return `node ${quoted} must not set blockOwnerDeletion on an owner reference`;
    }
    const uid = this.#store.get("nodes", node)?.metadata.uid;
    if (uid !== owner["uid"]) return `node ${node} UID mismatch: expected ${textAt(owner, "uid")} got ${uid ?? ""}`;
    const [reference] = referencesOf(pod).keys();
    return reference === undefined ? undefined : `a mirror pod may not reference ${spoken[reference] ?? reference}`;
  }

  #node(node: string, { operation, target, draft, old }: Change): string | undefined {
    const quoted = JSON.stringify(node);
    if (target.name !== node) return `node ${quoted} is not allowed to modify node ${JSON.stringify(target.name)}`;
    if (draft === undefined) return undefined;
    if (operation === "create") {
      // Kubelets themselves reject other labels in Kubernetes' domains at registration.
      const labels = forbiddenLabels(draft, undefined).filter(isRestrictedLabel).join(", ");
      return labels === "" ? undefined : `node ${quoted} is not allowed to set the following labels: ${labels}`;
    }
    if (!sameJson(at(draft, "spec.taints"), at(old, "spec.taints"))) {
      return `node ${quoted} is not allowed to modify taints`;
    }
    if (!sameJson(at(draft, "metadata.ownerReferences"), at(old, "metadata.ownerReferences"))) {
      return `node ${quoted} is not allowed to modify ownerReferences`;
    }
    const labels = forbiddenLabels(draft, old).join(", ");
    return labels === "" ? undefined : `is not allowed to modify labels: ${labels}`;
  }

  #claim(node: string, { target, draft, old }: Change): string | undefined {
    if (target.subresource !== "status" || draft === undefined || old === undefined) {
      return "may only update PVC status";
    }
    const rest = (claim: Fields): Fields => {
      const { capacity: _capacity, conditions: _conditions, ...status } = fieldsAt(claim, "status");
      const { allocatedResources: _amounts, allocatedResourceStatuses: _statuses, ...others } = status;
      return { ...draftOf(claim), status: others };
    };
    if (sameJson(rest(draft), rest(old))) return undefined;
    return `node ${JSON.stringify(node)} is not allowed to update fields other than status.quantity and status.conditions`;
  }

  #slice(node: string, { operation, draft, old }: Change): string | undefined {
    if (operation === "update" || textAt(draft ?? old, "spec.nodeName") === node) return undefined;
    return `can only ${operation} ResourceSlice with the same NodeName as the requesting node`;
  }

  /** A node may request certificates only for its own name. */
  #certificate(node: string, { operation, draft }: Change): string | undefined {
    const signers = ["kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"];
    if (operation !== "create" || draft === undefined) return undefined;
    if (!signers.includes(textAt(draft, "spec.signerName"))) return undefined;
    const { commonName } = readRequest(textAt(draft, "spec.request")).subject;
    return commonName === `system:node:${node}` ? undefined : `can only create a node CSR with CN=system:node:${node}`;
  }
}
