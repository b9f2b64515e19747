import { type ErrorSubject, forbidden } from "./api-error.ts";
import { type Draft, draftAt, draftsAt, fieldsAt, itemsAt, numberAt, textAt } from "./objects.ts";
import type { Admission, Change } from "./registry.ts";
import type { Store } from "./store.ts";

const mountPath = "/var/run/secrets/kubernetes.io/serviceaccount";

/** The volume through which a pod reaches the API (ServiceAccount admission, KEP-1205). */
function tokenVolume(name: string): Draft {
  return {
    name,
    projected: {
      defaultMode: 0o644,
      sources: [
        { serviceAccountToken: { expirationSeconds: 3607, path: "token" } },
        { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
        {
          downwardAPI: {
            items: [{ path: "namespace", fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" } }],
          },
        },
      ],
    },
  };
}

/** Completes a new pod from other objects: its account, priority class and runtime class. */
export class PodAdmission {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  readonly admit: Admission = ({ operation, target, draft }: Change) => {
    if (operation !== "create" || target.resource.plural !== "pods" || draft === undefined) return;
    // Mirror pods stay unchanged.
    if (fieldsAt(draft, "metadata.annotations")["kubernetes.io/config.mirror"] !== undefined) return;
    const subject = { group: "", resource: "pods", name: target.name };
    const spec = draftAt(draft, "spec");
    this.#account(spec, target.namespace, subject);
    this.#priority(spec, subject);
    this.#runtimeClass(spec, subject);
  };

  #account(spec: Draft, namespace: string, subject: ErrorSubject): void {
    spec["serviceAccountName"] ??= "default";
    spec["serviceAccount"] = spec["serviceAccountName"];
    const name = textAt(spec, "serviceAccountName");
    const account = this.#store.get("serviceaccounts", `${namespace}/${name}`);
    if (account === undefined) {
      throw forbidden(
        subject,
        `error looking up service account ${namespace}/${name}: serviceaccount ${JSON.stringify(name)} not found`,
      );
    }
    const secrets = itemsAt(account, "imagePullSecrets");
    if (itemsAt(spec, "imagePullSecrets").length === 0 && secrets.length > 0) spec["imagePullSecrets"] = [...secrets];
    const mounts = spec["automountServiceAccountToken"] ?? account["automountServiceAccountToken"] ?? true;
    if (mounts !== true) return;
    const containers = ["initContainers", "containers"].flatMap((list) => draftsAt(spec, list));
    const without = containers.filter(
      (each) => !itemsAt(each, "volumeMounts").some((mount) => mount["mountPath"] === mountPath),
    );
    if (without.length === 0) return;
    const volume = `kube-api-access-${Math.random().toString(36).slice(2, 7).padEnd(5, "x")}`;
    spec["volumes"] = [...itemsAt(spec, "volumes"), tokenVolume(volume)];
    for (const container of without) {
      const mount = { name: volume, readOnly: true, mountPath };
      container["volumeMounts"] = [...itemsAt(container, "volumeMounts"), mount];
    }
  }

  #priority(spec: Draft, subject: ErrorSubject): void {
    const name = textAt(spec, "priorityClassName");
    if (name === "" || name.startsWith("system-")) return;
    const found = this.#store.get("priorityclasses.scheduling.k8s.io", name);
    if (found === undefined) throw forbidden(subject, `no PriorityClass with name ${name} was found`);
    spec["priority"] = numberAt(found, "value");
    if (found["preemptionPolicy"] !== undefined) spec["preemptionPolicy"] = found["preemptionPolicy"];
  }

  #runtimeClass(spec: Draft, subject: ErrorSubject): void {
    const name = textAt(spec, "runtimeClassName");
    if (name === "") return;
    const found = this.#store.get("runtimeclasses.node.k8s.io", name);
    if (found === undefined) throw forbidden(subject, `pod rejected: RuntimeClass ${JSON.stringify(name)} not found`);
    const overhead = fieldsAt(found, "overhead.podFixed");
    if (Object.keys(overhead).length > 0) spec["overhead"] = overhead;
    const selector = fieldsAt(found, "scheduling.nodeSelector");
    if (Object.keys(selector).length > 0) spec["nodeSelector"] = { ...fieldsAt(spec, "nodeSelector"), ...selector };
  }
}
