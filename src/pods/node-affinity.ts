import type { Pod } from "../api/pod.ts";
import type { NodeSelectorRequirement, NodeSelectorTerm } from "../api/scheduling.ts";

type Labels = Readonly<Record<string, string>>;

/**
 * Whether a node matches a pod's nodeSelector and required node affinity. Invalid terms match no node, as upstream.
 * Pure.
 */
export function matchesNode({ spec }: Pod, node: { readonly name: string; readonly labels: Labels }): boolean {
  const selected = Object.entries(spec.nodeSelector ?? {}).every(([key, value]) => labelOf(node.labels, key) === value);
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  if (!selected || required === undefined) return selected;
  return (required.nodeSelectorTerms ?? []).some((term) => matchesTerm(term, node));
}

/** Whether a node matches a term; an empty one matches nothing. Pure. */
export function matchesTerm(
  term: NodeSelectorTerm,
  { name, labels }: { readonly name: string; readonly labels: Labels },
): boolean {
  const [expressions, fields] = [term.matchExpressions ?? [], term.matchFields ?? []];
  if (expressions.length + fields.length === 0) return false;
  return (
    expressions.every((expression) => matchesExpression(expression, labelOf(labels, expression.key))) &&
    fields.every((field) => field.key === "metadata.name" && matchesExpression(field, name))
  );
}

function matchesExpression({ operator, values }: NodeSelectorRequirement, value: string | undefined): boolean {
  const wanted = values ?? [];
  switch (operator) {
    case "In":
      return value !== undefined && wanted.includes(value);
    case "NotIn":
      return value === undefined || !wanted.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    case "Gt":
    case "Lt": {
      const [own, limit] = [integer(value), wanted.length === 1 ? integer(wanted[0]) : undefined];
      if (own === undefined || limit === undefined) return false;
      return operator === "Gt" ? own > limit : own < limit;
    }
    default:
      return false;
  }
}

function integer(text: string | undefined): bigint | undefined {
  return text !== undefined && /^[+-]?\d{1,19}$/u.test(text) ? BigInt(text.replace(/^\+/u, "")) : undefined;
}

function labelOf(labels: Labels, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}
