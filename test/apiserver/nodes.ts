import { at, draftAt, type Fields, fieldsAt, itemsAt, textAt } from "./objects.ts";
import type { Problem, Strategy } from "./resource.ts";

export const nodeStrategy: Strategy = {
  create: (draft) => {
    draftAt(draft, "spec");
    draftAt(draft, "status");
  },
  update: (draft, old) => void (draft["status"] = old["status"]),
  updateSubresource: (draft, old) => void (draft["spec"] = old["spec"]),
  validate: (node, old) => {
    const problems: Problem[] = labelProblems(node);
    const seen = new Set<string>();
    for (const taint of itemsAt(node, "spec.taints")) {
      const effect = textAt(taint, "effect");
      const id = `${textAt(taint, "key")}:${effect}`;
      if (seen.has(id)) problems.push(["metadata.taints", `Duplicate value: ${id}`]);
      if (!["NoSchedule", "PreferNoSchedule", "NoExecute"].includes(effect)) {
        problems.push(["metadata.taints", `Unsupported value: ${JSON.stringify(effect)}`]);
      }
      seen.add(id);
    }
    for (const field of ["spec.providerID", "spec.podCIDR"]) {
      const before = at(old, field);
      if (before !== undefined && before !== "" && before !== at(node, field)) {
        problems.push([field, "Forbidden: node updates may only change labels, taints, or capacity"]);
      }
    }
    return problems;
  },
};

/** A driver's topology becomes labels of its Node. */
function labelProblems(node: Fields): Problem[] {
  return Object.values(fieldsAt(node, "metadata.labels")).flatMap((value): Problem[] => {
    if (typeof value !== "string" || /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/.test(value)) return [];
    const why =
      value.length > 63
        ? "must be no more than 63 bytes"
        : "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.'";
    return [["metadata.labels", `Invalid value: ${JSON.stringify(value)}: ${why}`]];
  });
}

export const namespaceStrategy: Strategy = {
  create: (draft) => {
    draft["spec"] = { finalizers: ["kubernetes"] };
    draft["status"] = { phase: "Active" };
    // Selectors of network policies and webhooks rely on it.
    const metadata = draftAt(draft, "metadata");
    draftAt(metadata, "labels")["kubernetes.io/metadata.name"] = metadata["name"];
  },
  update: (draft, old) => {
    draft["spec"] = old["spec"];
    draft["status"] = old["status"];
  },
};
