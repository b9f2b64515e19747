import { loopbackUser } from "./authn.ts";
import { resourceNamed } from "./catalog.ts";
import type { Registry, Target } from "./registry.ts";

const caller = { user: loopbackUser };
const initial = ["default", "kube-system", "kube-public", "kube-node-lease"];

function target(plural: string, namespace: string, name: string): Target {
  return { resource: resourceNamed(plural), namespace, name };
}

/** What every namespace has: the account of pods that name none, and the authority that signs this server. */
function furnish(registry: Registry, namespace: string, authority: string): void {
  registry.create(target("serviceaccounts", namespace, "default"), {}, caller);
  registry.create(target("configmaps", namespace, "kube-root-ca.crt"), { data: { "ca.crt": authority } }, caller);
}

/** Makes the namespaces that every cluster has, and furnishes each new one, as the namespace controllers do. */
export function keepNamespaces(registry: Registry, authority: string): void {
  registry.store.subscribe(({ resource, previous, current, deleted }) => {
    if (resource === "namespaces" && previous === undefined && !deleted) {
      // Once the creation is over: its own event comes first.
      queueMicrotask(() => furnish(registry, current.metadata.name, authority));
    }
  });
  for (const name of initial) registry.create(target("namespaces", "", name), {}, caller);
}
