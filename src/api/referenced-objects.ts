import type { Pod, PodSpec } from "./pod.ts";

/** A ConfigMap or Secret that was added, changed or removed. */
export interface ChangedObject {
  readonly kind: "ConfigMap" | "Secret";
  readonly namespace: string;
  readonly name: string;
}

/** Whether a pod refers to the object anywhere in its spec. Pure. */
export function usesObject(pod: Pod, { kind, namespace, name }: ChangedObject): boolean {
  if (pod.metadata.namespace !== namespace) return false;
  const { configMaps, secrets } = referencedObjects(pod.spec);
  return (kind === "ConfigMap" ? configMaps : secrets).has(name);
}

/** Names of the ConfigMaps and Secrets that a pod refers to, anywhere in its spec or in a part of that. */
export function referencedObjects(spec: Partial<PodSpec>): {
  readonly configMaps: Set<string>;
  readonly secrets: Set<string>;
} {
  const configMaps = new Set<string>();
  const secrets = new Set<string>();
  const visit = (value: unknown, field: string): void => {
    if (Array.isArray(value)) for (const item of value) visit(item, field);
    else if (typeof value === "object" && value !== null) {
      const name: unknown = Reflect.get(value, field === "secret" && "secretName" in value ? "secretName" : "name");
      if (typeof name === "string" && field.startsWith("configMap")) configMaps.add(name);
      if (typeof name === "string" && /secret/iu.test(field)) secrets.add(name);
      for (const [key, child] of Object.entries(value)) visit(child, key);
    }
  };
  visit(spec, "");
  return { configMaps, secrets };
}
