import { once } from "node:events";
import { loopbackUser } from "./authn.ts";
import { resourceNamed, resourceOf } from "./catalog.ts";
import type { DeleteOptions } from "./deletion.ts";
import { type ApiObject, type Fields, type Json, textAt } from "./objects.ts";
import type { PatchType, Registry, Target } from "./registry.ts";

/** What a test writes wrong is an error. */
const caller = { user: loopbackUser, strict: true };

/** `"default/web"` or `"node1"`, by whether the resource has namespaces. */
function targetOf(plural: string, key: string, subresource = ""): Target {
  const resource = resourceNamed(plural);
  const slash = key.indexOf("/");
  if (resource.namespaced !== slash > 0) {
    throw new Error(`${plural} ${key}: ${resource.namespaced ? "no" : "a"} namespace`);
  }
  return { resource, namespace: key.slice(0, Math.max(slash, 0)), name: key.slice(slash + 1), subresource };
}

/** What a test does as the cluster's administrator, without HTTP but by the same rules. */
export class Admin {
  readonly #registry: Registry;

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  /** Creates an object; its namespace is `default` if it says none. @throws ApiError */
  create(object: Fields): ApiObject {
    const resource = resourceOf(textAt(object, "apiVersion"), textAt(object, "kind"));
    if (resource === undefined) {
      throw new Error(`no resource of ${textAt(object, "apiVersion")} ${textAt(object, "kind")}`);
    }
    const namespace = resource.namespaced ? textAt(object, "metadata.namespace") || "default" : "";
    return this.#registry.create({ resource, namespace, name: textAt(object, "metadata.name") }, object, caller);
  }

  /** @param key `namespace/name`, or the name of what has no namespace */
  find(plural: string, key: string): ApiObject | undefined {
    return this.#registry.find(targetOf(plural, key));
  }

  get(plural: string, key: string): ApiObject {
    return this.#registry.get(targetOf(plural, key));
  }

  list(plural: string): readonly ApiObject[] {
    return this.#registry.store.all(resourceNamed(plural).storage);
  }

  update(plural: string, key: string, object: Fields, subresource = ""): ApiObject {
    return this.#registry.update(targetOf(plural, key, subresource), object, caller);
  }

  /** A strategic merge patch unless said otherwise. */
  patch(
    plural: string,
    key: string,
    patch: Json,
    options: { readonly subresource?: string; readonly type?: PatchType } = {},
  ): ApiObject {
    const type = options.type ?? "application/strategic-merge-patch+json";
    return this.#registry.patch(targetOf(plural, key, options.subresource), type, patch, caller);
  }

  delete(plural: string, key: string, options: DeleteOptions = {}): ApiObject {
    return this.#registry.delete(targetOf(plural, key), options, caller).object;
  }

  /**
   * Waits until an object is as told.
   * @param holds gets undefined while there is no such object
   * @throws Error after `timeoutMs`, with what the object was then
   */
  async until(
    plural: string,
    key: string,
    holds: (object: ApiObject | undefined) => boolean,
    timeoutMs = 10_000,
  ): Promise<ApiObject | undefined> {
    const seen = (): ApiObject | undefined => this.find(plural, key);
    if (holds(seen())) return seen();
    const met = new AbortController();
    const end = this.#registry.store.subscribe(() => holds(seen()) && met.abort());
    const timer = setTimeout(() => met.abort(new Error("too late")), timeoutMs);
    await once(met.signal, "abort");
    clearTimeout(timer);
    end();
    const last = seen();
    if (!holds(last)) {
      throw new Error(`${plural} ${key} did not become as told within ${timeoutMs} ms: ${JSON.stringify(last)}`);
    }
    return last;
  }
}
