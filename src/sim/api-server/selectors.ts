import type { ApiCallParts } from "./request.ts";
import { type Fields, fieldsAt, Refusal, type Value } from "./values.ts";

/** A predicate for the objects in a call's result. @throws Refusal (400) for a selector that no resource here has */
export function selectorOf({ namespace, query }: ApiCallParts): (value: Value) => boolean {
  const terms = (query.get("fieldSelector") ?? "").split(",").filter((term) => term !== "");
  const tests = terms.map((term) => {
    const [, path = "", operator = "", wanted = ""] = /^([^=!]+)(!=|==?)(.*)$/u.exec(term) ?? [];
    const known = ["metadata.name", "spec.nodeName", "spec.clusterIP"].includes(path);
    if (!known) throw new Refusal(400, "BadRequest", `field label not supported: ${term}`);
    const equal = operator !== "!=";
    return (value: Fields): boolean => (textAt(value, path) === wanted) === equal;
  });
  return (value) => {
    if (namespace !== undefined && value.metadata.namespace !== namespace) return false;
    return tests.every((test) => test(value));
  };
}

function textAt(value: Fields, path: string): string {
  const [outer = "", inner = ""] = path.split(".");
  const found = fieldsAt(value, outer)[inner];
  return typeof found === "string" ? found : "";
}
