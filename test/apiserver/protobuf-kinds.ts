/** Field numbers of kubectl's protobuf messages (the `generated.proto` files of k8s.io/api and apimachinery). */

/** A field's type: a scalar or a message. */
export type FieldType =
  | "string"
  | "bytes"
  | "integer"
  | "boolean"
  | "time"
  | "texts"
  | "quantity"
  | "integer or string"
  | Message;

interface Field {
  readonly name: string;
  readonly type: FieldType;
  readonly of?: "list" | "map";
}

/** A message: fields by number. */
export interface Message {
  readonly [number: number]: Field;
}

const text = (name: string): Field => ({ name, type: "string" });
const one = (name: string, type: FieldType): Field => ({ name, type });
const list = (name: string, type: FieldType = "string"): Field => ({ name, type, of: "list" });
const map = (name: string, type: FieldType = "string"): Field => ({ name, type, of: "map" });

const meta = one("metadata", {
  1: text("name"),
  2: text("generateName"),
  3: text("namespace"),
  5: text("uid"),
  6: text("resourceVersion"),
  8: one("creationTimestamp", "time"),
  9: one("deletionTimestamp", "time"),
  10: one("deletionGracePeriodSeconds", "integer"),
  11: map("labels"),
  12: map("annotations"),
  14: list("finalizers"),
});
const deleteOptions: Message = {
  1: one("gracePeriodSeconds", "integer"),
  2: one("preconditions", { 1: text("uid"), 2: text("resourceVersion") }),
  4: text("propagationPolicy"),
  5: list("dryRun"),
};
const attributes: Message = {
  1: text("namespace"),
  2: text("verb"),
  3: text("group"),
  4: text("version"),
  5: text("resource"),
  6: text("subresource"),
  7: text("name"),
};
const condition: Message = {
  1: text("type"),
  2: text("reason"),
  3: text("message"),
  4: one("lastUpdateTime", "time"),
  5: one("lastTransitionTime", "time"),
  6: text("status"),
};
const requestSpec: Message = {
  1: one("request", "bytes"),
  2: text("username"),
  3: text("uid"),
  4: list("groups"),
  5: list("usages"),
  6: map("extra", "texts"),
  7: text("signerName"),
  8: one("expirationSeconds", "integer"),
};

const selector: Message = {
  1: map("matchLabels"),
  2: list("matchExpressions", { 1: text("key"), 2: text("operator"), 3: list("values") }),
};
const budgetSpec: Message = {
  1: one("minAvailable", "integer or string"),
  2: one("selector", selector),
  3: one("maxUnavailable", "integer or string"),
  4: text("unhealthyPodEvictionPolicy"),
};
const quotaSpec: Message = {
  1: map("hard", "quantity"),
  2: list("scopes"),
  3: one("scopeSelector", {
    1: list("matchExpressions", { 1: text("scopeName"), 2: text("operator"), 3: list("values") }),
  }),
};
const servicePort: Message = {
  1: text("name"),
  2: text("protocol"),
  3: one("port", "integer"),
  4: one("targetPort", "integer or string"),
  5: one("nodePort", "integer"),
  6: text("appProtocol"),
};
const serviceSpec: Message = {
  1: list("ports", servicePort),
  2: map("selector"),
  3: text("clusterIP"),
  4: text("type"),
  5: list("externalIPs"),
  7: text("sessionAffinity"),
  10: text("externalName"),
  18: list("clusterIPs"),
};

/** The kinds that kubectl's own commands send as protobuf. */
export const protobufKinds: Readonly<Record<string, Message>> = {
  Namespace: { 1: meta },
  ConfigMap: { 1: meta, 2: map("data"), 3: map("binaryData", "bytes"), 4: one("immutable", "boolean") },
  Secret: { 1: meta, 2: map("data", "bytes"), 3: text("type"), 4: map("stringData"), 5: one("immutable", "boolean") },
  ServiceAccount: { 1: meta, 4: one("automountServiceAccountToken", "boolean") },
  DeleteOptions: deleteOptions,
  Eviction: { 1: meta, 2: one("deleteOptions", deleteOptions) },
  CertificateSigningRequest: {
    1: meta,
    2: one("spec", requestSpec),
    3: one("status", { 1: list("conditions", condition), 2: one("certificate", "bytes") }),
  },
  PriorityClass: {
    1: meta,
    2: one("value", "integer"),
    3: one("globalDefault", "boolean"),
    4: text("description"),
    5: text("preemptionPolicy"),
  },
  PodDisruptionBudget: { 1: meta, 2: one("spec", budgetSpec) },
  ResourceQuota: { 1: meta, 2: one("spec", quotaSpec) },
  Service: { 1: meta, 2: one("spec", serviceSpec) },
  SelfSubjectReview: { 1: meta },
  SelfSubjectRulesReview: { 1: meta, 2: one("spec", { 1: text("namespace") }) },
  SelfSubjectAccessReview: {
    1: meta,
    2: one("spec", {
      1: one("resourceAttributes", attributes),
      2: one("nonResourceAttributes", { 1: text("path"), 2: text("verb") }),
    }),
  },
  TokenRequest: {
    1: meta,
    2: one("spec", {
      1: list("audiences"),
      3: one("boundObjectRef", { 1: text("kind"), 2: text("apiVersion"), 3: text("name"), 4: text("uid") }),
      4: one("expirationSeconds", "integer"),
    }),
  },
};
