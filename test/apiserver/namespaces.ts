import { loopbackUser } from "./authn.ts";
import { catalog, resourceNamed } from "./catalog.ts";
import { later } from "./later.ts";
import { fieldsAt, textAt } from "./objects.ts";
import type { Registry, Target } from "./registry.ts";
import type { StoreEvent } from "./store.ts";

const caller = { user: loopbackUser };
const initial = ["default", "kube-system", "kube-public", "kube-node-lease"];

function target(plural: string, namespace: string, name: string): Target {
  return { resource: resourceNamed(plural), namespace, name };
}

/**
 * The namespace controllers: create a new namespace's default objects, and empty a terminating one.
 * @param authority the certificate of this server's authority, published to pods in each namespace
 */
export function keepNamespaces(registry: Registry, authority: string): void {
  const keeper = new NamespaceKeeper(registry, authority);
  registry.store.subscribe((event) => keeper.look(event));
  for (const name of initial) registry.create(target("namespaces", "", name), {}, caller);
}

class NamespaceKeeper {
  readonly #registry: Registry;
  readonly #authority: string;

  constructor(registry: Registry, authority: string) {
    this.#registry = registry;
    this.#authority = authority;
  }

  /** Deferred until after the triggering change, so that the change's event comes first. */
  look({ resource, previous, current, deleted }: StoreEvent): void {
    const { name, namespace = "", deletionTimestamp } = current.metadata;
    if (resource === "namespaces" && previous === undefined) {
      later(() => this.#furnish(name));
    } else if (resource === "namespaces" && deletionTimestamp !== undefined && !deleted) {
      later(() => this.#empty(name));
    } else if (deleted && namespace !== "" && this.#isTerminating(namespace)) {
      later(() => this.#empty(namespace));
    }
  }

  #furnish(namespace: string): void {
    const authority = { data: { "ca.crt": this.#authority } };
    this.#registry.create(target("serviceaccounts", namespace, "default"), {}, caller);
    this.#registry.create(target("configmaps", namespace, "kube-root-ca.crt"), authority, caller);
  }

  #isTerminating(namespace: string): boolean {
    return this.#registry.store.get("namespaces", namespace)?.metadata.deletionTimestamp !== undefined;
  }

  #empty(name: string): void {
    const { store } = this.#registry;
    const namespace = store.get("namespaces", name);
    if (namespace === undefined) return;
    if (textAt(namespace, "status.phase") !== "Terminating") {
      const status = { ...fieldsAt(namespace, "status"), phase: "Terminating" };
      store.put("namespaces", name, { ...namespace, status });
    }
    let left = 0;
    for (const resource of catalog.filter((each) => each.namespaced && each.conversion === undefined)) {
      for (const { metadata } of store.all(resource.storage).filter((each) => each.metadata.namespace === name)) {
        const { gone } = this.#registry.delete({ resource, namespace: name, name: metadata.name }, {}, caller);
        if (!gone) left++;
      }
    }
    // Objects with a grace period trigger another call when they are removed.
    if (left === 0) store.remove("namespaces", name);
  }
}
