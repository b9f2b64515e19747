import { loopbackUser } from "./authn.ts";
import { catalog } from "./catalog.ts";
import { later } from "./later.ts";
import type { ApiObject } from "./objects.ts";
import type { Registry } from "./registry.ts";

const caller = { user: loopbackUser };

/** Removes objects whose last owner was removed, like the garbage collector in the background. */
export function collectGarbage(registry: Registry): void {
  const { store } = registry;
  const exists = (uid: string): boolean =>
    catalog.some(({ storage }) => store.all(storage).some((object) => object.metadata.uid === uid));
  const collect = (owner: string): void => {
    for (const resource of catalog.filter(({ conversion }) => conversion === undefined)) {
      const isOwned = ({ metadata }: ApiObject): boolean =>
        (metadata.ownerReferences ?? []).some(({ uid }) => uid === owner);
      for (const { metadata } of store.all(resource.storage).filter(isOwned)) {
        if ((metadata.ownerReferences ?? []).some(({ uid }) => exists(uid))) continue;
        registry.delete({ resource, namespace: metadata.namespace ?? "", name: metadata.name }, {}, caller);
      }
    }
  };
  store.subscribe(({ deleted, current }) => {
    if (deleted) later(() => collect(current.metadata.uid));
  });
}
