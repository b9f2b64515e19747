import type { Pod } from "../api/pod.ts";
import { referencedObjects } from "../sources/run-objects.ts";

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
