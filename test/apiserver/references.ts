import { type Fields, itemsAt, textAt } from "./objects.ts";

/** Names of referenced objects in the pod's namespace, by resource. */
export type References = ReadonlyMap<string, ReadonlySet<string>>;

/** A pod's references: the objects that its node may read. */
export function referencesOf(pod: Fields): References {
  const found = new Map<string, Set<string>>();
  const add = (resource: string, name: string): void => {
    if (name === "") return;
    const names = found.get(resource) ?? new Set<string>();
    found.set(resource, names.add(name));
  };
  add("serviceaccounts", textAt(pod, "spec.serviceAccountName"));
  for (const { name } of itemsAt(pod, "spec.imagePullSecrets")) add("secrets", typeof name === "string" ? name : "");
  for (const list of ["containers", "initContainers", "ephemeralContainers"]) {
    for (const container of itemsAt(pod, `spec.${list}`)) {
      for (const variable of itemsAt(container, "env")) {
        add("configmaps", textAt(variable, "valueFrom.configMapKeyRef.name"));
        add("secrets", textAt(variable, "valueFrom.secretKeyRef.name"));
      }
      for (const source of itemsAt(container, "envFrom")) {
        add("configmaps", textAt(source, "configMapRef.name"));
        add("secrets", textAt(source, "secretRef.name"));
      }
    }
  }
  for (const volume of itemsAt(pod, "spec.volumes")) {
    for (const source of [volume, ...itemsAt(volume, "projected.sources")]) {
      add("configmaps", textAt(source, "configMap.name"));
      add("secrets", textAt(source, "secret.secretName") || textAt(source, "secret.name"));
    }
    add("secrets", textAt(volume, "csi.nodePublishSecretRef.name"));
    add("persistentvolumeclaims", textAt(volume, "persistentVolumeClaim.claimName"));
    if (volume["ephemeral"] !== undefined) {
      add("persistentvolumeclaims", `${textAt(pod, "metadata.name")}-${textAt(volume, "name")}`);
    }
  }
  return found;
}
