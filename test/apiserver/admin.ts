import { once } from "node:events";
import { loopbackUser } from "./authn.ts";
import { resourceNamed, resourceOf } from "./catalog.ts";
import type { DeleteOptions } from "./deletion.ts";
import { type ApiObject, type Fields, type Json, textAt } from "./objects.ts";
import type { PatchType, Registry, Target } from "./registry.ts";

/** How many times as long as usual to wait, on a slow machine. */
const patience = Math.max(1, Number(process.env["PODWRIGHT_TEST_PATIENCE"] ?? 1) || 1);

/** Strict: mistakes in a test are errors. */
const caller = { user: loopbackUser, strict: true };

/** `"default/web"`, or `"node1"` for a resource without namespaces. */
function targetOf(plural: string, key: string, subresource = ""): Target {
  const resource = resourceNamed(plural);
  const slash = key.indexOf("/");
  if (resource.namespaced !== slash > 0) {
    throw new Error(`${plural} ${key}: ${resource.namespaced ? "no" : "a"} namespace`);
  }
  return { resource, namespace: key.slice(0, Math.max(slash, 0)), name: key.slice(slash + 1), subresource };
}

/** A test's access as the cluster's administrator: without HTTP, but by the same rules. */
export class Admin {
  readonly #registry: Registry;

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  /** Creates an object; the default namespace is `default`. @throws ApiError */
  create(object: Fields): ApiObject {
    const resource = resourceOf(textAt(object, "apiVersion"), textAt(object, "kind"));
    if (resource === undefined) {
      throw new Error(`no resource of ${textAt(object, "apiVersion")} ${textAt(object, "kind")}`);
    }
    const namespace = resource.namespaced ? textAt(object, "metadata.namespace") || "default" : "";
    return this.#registry.create({ resource, namespace, name: textAt(object, "metadata.name") }, object, caller);
  }

  /** @param key `namespace/name`, or the name without namespaces */
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

  /** A strategic merge patch by default. */
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
   * Waits until an object satisfies a condition.
   * @param holds gets undefined while the object does not exist
   * @throws Error after `timeoutMs` (longer on a slow machine), with the object
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
    const limitMs = timeoutMs * patience;
    const timer = setTimeout(() => met.abort(new Error("too late")), limitMs);
    await once(met.signal, "abort");
    clearTimeout(timer);
    end();
    const last = seen();
    if (!holds(last)) {
      throw new Error(`${plural} ${key} did not become as told within ${limitMs} ms: ${JSON.stringify(last)}`);
    }
    return last;
  }
}
