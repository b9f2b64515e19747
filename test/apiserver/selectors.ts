import { badRequest } from "./api-error.ts";
import { type ApiObject, at, type Fields, textAt } from "./objects.ts";

/** Whether an object is selected. */
export type Selector = (object: Fields) => boolean;

function labelsOf(object: Fields): Fields {
  const labels = at(object, "metadata.labels");
  return typeof labels === "object" && labels !== null && !Array.isArray(labels) ? (labels as Fields) : {};
}

/** One requirement: `a`, `!a`, `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`. */
const requirement =
  /^\s*(?:(?<absent>!)\s*(?<absentKey>[\w./-]+)|(?<setKey>[\w./-]+)\s+(?<set>in|notin)\s*\((?<values>[^()]*)\)|(?<key>[\w./-]+)\s*(?:(?<operator>==|=|!=|>|<)\s*(?<value>[\w.-]*))?)\s*$/;

function labelRequirement(text: string): Selector {
  const groups = requirement.exec(text)?.groups;
  if (groups === undefined) throw badRequest(`unable to parse requirement: ${JSON.stringify(text)}`);
  const { absentKey, setKey, set, values, key = "", operator, value = "" } = groups;
  if (absentKey !== undefined) return (object) => labelsOf(object)[absentKey] === undefined;
  if (setKey !== undefined) {
    const wanted = new Set((values ?? "").split(",").map((each) => each.trim()));
    return (object) => {
      const label = labelsOf(object)[setKey];
      const isIn = typeof label === "string" && wanted.has(label);
      return set === "in" ? isIn : !isIn;
    };
  }
  if (operator === undefined) return (object) => labelsOf(object)[key] !== undefined;
  if (operator === "!=") return (object) => labelsOf(object)[key] !== value;
  if (operator === ">") return (object) => Number(labelsOf(object)[key]) > Number(value);
  if (operator === "<") return (object) => Number(labelsOf(object)[key]) < Number(value);
  return (object) => labelsOf(object)[key] === value;
}

/** Splits at commas outside of parentheses. */
function splitRequirements(text: string): string[] {
  return text.trim() === "" ? [] : text.split(/,(?![^(]*\))/);
}

/** The label selector of a request, such as `app=web,tier in (a,b),!old`. */
export function labelSelector(text: string): Selector {
  const all = splitRequirements(text).map(labelRequirement);
  return (object) => all.every((holds) => holds(object));
}

/**
 * The field selector of a request, such as `spec.nodeName=node1,status.phase!=Failed`.
 * @param known the resource's selectable fields, besides `metadata.name` and `metadata.namespace`
 */
export function fieldSelector(text: string, known: readonly string[]): Selector {
  const allowed = new Set(["metadata.name", "metadata.namespace", ...known]);
  const all = splitRequirements(text).map((term): Selector => {
    const parts = /^(?<field>[^=!]+)(?<operator>==|=|!=)(?<value>.*)$/.exec(term)?.groups;
    const { field = "", operator = "", value = "" } = parts ?? {};
    if (parts === undefined) throw badRequest(`invalid selector: '${text}'; can't understand '${term}'`);
    if (!allowed.has(field)) {
      throw badRequest(`Unable to find "${field}" that match a known field label: field label not supported: ${field}`);
    }
    return (object) => (fieldText(object, field) === value) !== (operator === "!=");
  });
  return (object) => all.every((holds) => holds(object));
}

/** A field as text; `""` if missing. */
function fieldText(object: Fields, field: string): string {
  const value = at(object, field);
  if (typeof value === "string") return value;
  if (typeof value === "boolean" || typeof value === "number") return String(value);
  return field === "spec.unschedulable" || field === "spec.hostNetwork" ? "false" : "";
}

/** `matchLabels` and `matchExpressions` of a LabelSelector object, such as a PodDisruptionBudget's. */
export function matchesLabelSelector(selector: Fields, object: ApiObject): boolean {
  const labels = labelsOf(object);
  const pairs = Object.entries((selector["matchLabels"] ?? {}) as Fields);
  if (!pairs.every(([key, value]) => labels[key] === value)) return false;
  return ((selector["matchExpressions"] ?? []) as readonly Fields[]).every((expression) => {
    const { operator, values } = expression;
    const label = labels[textAt(expression, "key")];
    const isIn = Array.isArray(values) && label !== undefined && (values as unknown[]).includes(label);
    if (operator === "In") return isIn;
    if (operator === "NotIn") return !isIn;
    return (label !== undefined) === (operator === "Exists");
  });
}
