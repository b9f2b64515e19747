import { z } from "zod";
import type { Pod } from "../api/pod.ts";

const Expression = z.looseObject({
  key: z.string(),
  operator: z.string(),
  values: z.array(z.string()).nullish(),
});
const Term = z.looseObject({
  matchExpressions: z.array(Expression).nullish(),
  matchFields: z.array(Expression).nullish(),
});
const Affinity = z.looseObject({
  nodeAffinity: z
    .looseObject({
      requiredDuringSchedulingIgnoredDuringExecution: z
        .looseObject({ nodeSelectorTerms: z.array(Term).nullish() })
        .nullish(),
    })
    .nullish(),
});

type Expression = z.infer<typeof Expression>;
type Term = z.infer<typeof Term>;
type Labels = Readonly<Record<string, string>>;

/**
 * Whether a node is one that the pod asks for: all labels of its nodeSelector, and one term of its required affinity.
 * What can't be understood matches no node, as upstream. Pure.
 */
export function matchesNode({ spec }: Pod, node: { readonly name: string; readonly labels: Labels }): boolean {
  const selected = Object.entries(spec.nodeSelector ?? {}).every(([key, value]) => labelOf(node.labels, key) === value);
  if (!selected || spec.affinity === undefined || spec.affinity === null) return selected;
  const affinity = Affinity.safeParse(spec.affinity);
  if (!affinity.success) return false;
  const required = affinity.data.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  if (required === undefined || required === null) return true;
  return (required.nodeSelectorTerms ?? []).some((term) => matchesTerm(term, node));
}

/** A term that asks for nothing matches nothing. */
function matchesTerm(term: Term, { name, labels }: { readonly name: string; readonly labels: Labels }): boolean {
  const [expressions, fields] = [term.matchExpressions ?? [], term.matchFields ?? []];
  if (expressions.length + fields.length === 0) return false;
  return (
    expressions.every((expression) => matchesExpression(expression, labelOf(labels, expression.key))) &&
    fields.every((field) => field.key === "metadata.name" && matchesExpression(field, name))
  );
}

function matchesExpression({ operator, values }: Expression, value: string | undefined): boolean {
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
