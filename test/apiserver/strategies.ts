import { ApiError } from "./api-error.ts";
import { type ApiObject, at, draftAt, draftsAt, type Fields, fieldsAt, itemsAt, sameJson, textAt } from "./objects.ts";
import { readRequest } from "./pkcs10.ts";
import type { Problem, Strategy } from "./resource.ts";

/** Events belong to their object's namespace. */
export const eventStrategy: Strategy = {
  validate: (event) => {
    const namespace = textAt(event, "involvedObject.namespace") || "default";
    return namespace === textAt(event, "metadata.namespace")
      ? []
      : [["involvedObject.namespace", `Invalid value: ${JSON.stringify(namespace)}: does not match event.namespace`]];
  },
};

/** Changes of an immutable ConfigMap or Secret. */
function frozenProblems(draft: Fields, old: ApiObject | undefined): Problem[] {
  if (old?.["immutable"] !== true) return [];
  const why = "Forbidden: field is immutable when `immutable` is set";
  const problems: Problem[] = draft["immutable"] === true ? [] : [["immutable", why]];
  for (const member of ["data", "binaryData"]) {
    if (!sameJson(draft[member] ?? {}, old[member] ?? {})) problems.push([member, why]);
  }
  return problems;
}

export const configMapStrategy: Strategy = { validate: frozenProblems };

const longestNodeId = 256;

/** A driver's entry in a CSINode is immutable, except its allocatable (upstream's ValidateCSINodeUpdate). */
export const csiNodeStrategy: Strategy = {
  validate: (csiNode, old) => {
    const before = new Map(itemsAt(old, "spec.drivers").map((driver) => [textAt(driver, "name"), driver]));
    return itemsAt(csiNode, "spec.drivers").flatMap((driver, index): Problem[] => {
      const [place, nodeId] = [`spec.drivers[${index}].nodeID`, textAt(driver, "nodeID")];
      const known = before.get(textAt(driver, "name"));
      const isOther = known !== undefined && !sameJson(immutablePart(driver), immutablePart(known));
      return [
        ...(nodeId === "" ? ([[place, "Required value"]] as const) : []),
        ...(nodeId.length > longestNodeId
          ? ([
              [place, `Invalid value: ${JSON.stringify(nodeId)}: must be ${longestNodeId} characters or less`],
            ] as const)
          : []),
        ...(isOther ? ([["spec.drivers", "Invalid value: field is immutable"]] as const) : []),
      ];
    });
  },
};

function immutablePart({ allocatable: _mutable, topologyKeys, ...rest }: Fields): Fields {
  return { ...rest, topologyKeys: topologyKeys ?? [] };
}

/** Objects without rules. */
export const plainStrategy: Strategy = {};

/** Objects with `spec` and `status`, each with its own endpoint. */
export const specAndStatusStrategy: Strategy = {
  create: (draft) => void (draft["status"] = {}),
  update: (draft, old) => void (draft["status"] = old["status"]),
  updateSubresource: (draft, old) => void (draft["spec"] = old["spec"]),
};

export const leaseStrategy: Strategy = {
  needsResourceVersion: true,
  validate: (lease) => {
    const seconds = at(lease, "spec.leaseDurationSeconds");
    return typeof seconds === "number" && seconds <= 0
      ? [["spec.leaseDurationSeconds", `Invalid value: ${seconds}: must be greater than 0`]]
      : [];
  },
};

export const secretStrategy: Strategy = {
  create: (draft) => {
    draft["type"] ??= "Opaque";
    const plain = fieldsAt(draft, "stringData");
    delete draft["stringData"];
    for (const [name, value] of Object.entries(plain)) {
      draftAt(draft, "data")[name] = Buffer.from(typeof value === "string" ? value : "").toString("base64");
    }
  },
  validate: (secret, old) => [
    ...(old !== undefined && secret["type"] !== old["type"]
      ? ([["type", "Invalid value: field is immutable"]] as const)
      : []),
    ...frozenProblems(secret, old),
  ],
};

export const claimStrategy: Strategy = {
  ...specAndStatusStrategy,
  create: (draft) => {
    draft["status"] = { phase: "Pending" };
    draftAt(draft, "spec")["volumeMode"] ??= "Filesystem";
  },
};

/** The next service address, within 10.96.0.0/16. */
let nextServiceAddress = 10;

export const serviceStrategy: Strategy = {
  create: (draft) => {
    const spec = draftAt(draft, "spec");
    spec["type"] ??= "ClusterIP";
    spec["sessionAffinity"] ??= "None";
    spec["internalTrafficPolicy"] ??= "Cluster";
    if (spec["type"] !== "ExternalName") {
      spec["clusterIP"] ??= `10.96.${Math.floor(nextServiceAddress / 250) % 256}.${(nextServiceAddress++ % 250) + 1}`;
      spec["clusterIPs"] = [spec["clusterIP"]];
      spec["ipFamilies"] ??= ["IPv4"];
      spec["ipFamilyPolicy"] ??= "SingleStack";
    }
    for (const port of draftsAt(draft, "spec.ports")) {
      port["protocol"] ??= "TCP";
      port["targetPort"] ??= port["port"];
    }
    draft["status"] = { loadBalancer: {} };
  },
  update: (draft, old) => {
    draft["status"] = old["status"];
    const spec = draftAt(draft, "spec");
    for (const name of ["clusterIP", "clusterIPs", "type"]) spec[name] ??= at(old, `spec.${name}`);
  },
  updateSubresource: (draft, old) => void (draft["spec"] = old["spec"]),
};

/** A signing request's `spec` is immutable; its approval and status have their own endpoints. */
export const certificateRequestStrategy: Strategy = {
  anyName: true,
  create: (draft, author) => {
    draft["status"] = {};
    const spec = draftAt(draft, "spec");
    for (const name of ["username", "uid", "groups", "extra"]) delete spec[name];
    spec["username"] = author.name;
    spec["groups"] = [...author.groups];
    if (author.uid !== undefined) spec["uid"] = author.uid;
    if (author.extra !== undefined) spec["extra"] = { ...author.extra };
  },
  update: (draft, old) => {
    draft["spec"] = old["spec"];
    draft["status"] = old["status"];
  },
  updateSubresource: (draft, old, subresource) => {
    draft["spec"] = old["spec"];
    if (subresource === "approval") {
      draft["status"] = { ...fieldsAt(old, "status"), conditions: at(draft, "status.conditions") };
    }
  },
  validate: (request, old) => {
    const problems: Problem[] = [];
    if (!textAt(request, "spec.signerName").includes("/")) {
      problems.push(["spec.signerName", "Invalid value: must be a fully qualified name"]);
    }
    if (old !== undefined) return problems;
    try {
      // Throws for a malformed request, or one that is not signed by its key.
      readRequest(textAt(request, "spec.request"));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      problems.push(["spec.request", `Invalid value: ${error.message}`]);
    }
    return problems;
  },
};
