import { isDeepStrictEqual } from "node:util";
import * as z from "zod";
import type { ReflectorHandler, ReflectorTarget } from "../api-client/reflector.ts";
import { type ApiObject, decoder, type Resource } from "../api-client/resource.ts";
import { DataMap } from "../api/meta.ts";
import type { Pod, PodSpec } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import type { Cause, Recorder } from "../journal/entry.ts";
import { NotKnownYetError } from "../runtime/config/container-config-error.ts";
import { type ChangedObject, referencedObjects } from "../api/referenced-objects.ts";
import { type ConfigMapContent, type SecretContent, configMapContent, secretContent } from "../api/object-content.ts";

const metadata = z.object({
  name: z.string(),
  namespace: z.string().optional(),
  uid: z.string().optional(),
  resourceVersion: z.string().optional(),
});
const ConfigMap = z.object({
  metadata,
  data: DataMap.optional(),
  binaryData: DataMap.optional(),
  immutable: z.boolean().optional(),
});
const Secret = z.object({
  metadata,
  type: z.string().optional(),
  data: DataMap.optional(),
  immutable: z.boolean().optional(),
});

interface StoredObject extends ApiObject {
  readonly immutable?: boolean | undefined;
}

/** Watches a collection until the signal aborts (a reflector). */
export type Watcher = <T extends ApiObject>(
  target: ReflectorTarget<T>,
  handler: ReflectorHandler<T>,
  signal: AbortSignal,
) => Promise<void>;

export interface ApiObjectsDependencies {
  readonly journal: Recorder;
  readonly watch: Watcher;
  /** Called for objects that pods may have read already, or wait for. */
  readonly objectsChanged: (objects: readonly ChangedObject[], cause: Cause) => void;
}

/** One object that pods refer to. */
interface Watched {
  readonly users: Set<string>;
  readonly stop: AbortController;
  readonly known: PromiseWithResolvers<void>;
  isKnown: boolean;
  /** Undefined: not found. */
  content: ConfigMapContent | SecretContent | undefined;
}

type Kind = ChangedObject["kind"];

/**
 * The ConfigMaps and Secrets of the node's pods, each watched while a pod refers to it (upstream's watch-based
 * managers). An immutable one is no longer watched once known.
 */
export class ApiObjects {
  readonly #deps: ApiObjectsDependencies;
  readonly #watched = new Map<string, Watched>();
  readonly #keysOf = new Map<string, ReadonlySet<string>>();
  #stopped = false;

  constructor(deps: ApiObjectsDependencies) {
    this.#deps = deps;
  }

  /** Watched or known objects, for diagnostics. */
  get size(): number {
    return this.#watched.size;
  }

  /** The pod as it is now: its objects are watched from here on. */
  add(pod: Pod): void {
    if (this.#stopped) return;
    const { uid, namespace } = pod.metadata;
    const referenced = referencedObjects(pod.spec);
    const keys = keysIn(namespace, referenced);
    const before = this.#keysOf.get(uid) ?? new Set();
    this.#keysOf.set(uid, keys);
    for (const name of referenced.configMaps) this.#use("ConfigMap", namespace, name, uid);
    for (const name of referenced.secrets) this.#use("Secret", namespace, name, uid);
    for (const key of before) if (!keys.has(key)) this.#letGo(key, uid);
  }

  /** The pod is removed, or has ended for good. */
  remove(uid: PodUid): void {
    for (const key of this.#keysOf.get(uid) ?? []) this.#letGo(key, uid);
    this.#keysOf.delete(uid);
  }

  /** Whether the pod was {@link add}ed: static pods refer to nothing, and must not wait for the API server. */
  has(uid: PodUid): boolean {
    return this.#keysOf.has(uid);
  }

  /** Resolves once the content, or absence, of all objects in a part of a pod's spec is known. */
  async known(namespace: string, part: Partial<PodSpec>): Promise<void> {
    for (const key of keysIn(namespace, referencedObjects(part))) await this.#watched.get(key)?.known.promise;
  }

  /** @throws NotKnownYetError while the API server has not answered */
  configMap(namespace: string, name: string): ConfigMapContent | undefined {
    const content = this.#content("ConfigMap", namespace, name);
    return content !== undefined && "binaryData" in content ? content : undefined;
  }

  /** @throws ContainerConfigError like {@link configMap} */
  secret(namespace: string, name: string): SecretContent | undefined {
    const content = this.#content("Secret", namespace, name);
    return content === undefined || "binaryData" in content ? undefined : content;
  }

  /** Ends all watches. */
  stop(): void {
    this.#stopped = true;
    for (const { stop } of this.#watched.values()) stop.abort(new Error("the node is stopping"));
  }

  #content(kind: Kind, namespace: string, name: string): Watched["content"] {
    const watched = this.#watched.get(keyOf(kind, namespace, name));
    if (watched?.isKnown === true) return watched.content;
    const what = kind.toLowerCase();
    throw new NotKnownYetError(`failed to sync ${what} cache: ${what} ${JSON.stringify(name)} is not known yet`);
  }

  #use(kind: Kind, namespace: string, name: string, uid: PodUid): void {
    const key = keyOf(kind, namespace, name);
    const known = this.#watched.get(key);
    if (known !== undefined) {
      known.users.add(uid);
      return;
    }
    const watched: Watched = {
      users: new Set([uid]),
      stop: new AbortController(),
      known: Promise.withResolvers(),
      isKnown: false,
      content: undefined,
    };
    this.#watched.set(key, watched);
    const object = { kind, namespace, name };
    if (kind === "ConfigMap") this.#watch(object, watched, configMaps, configMapContent);
    else this.#watch(object, watched, secrets, secretContent);
  }

  #watch<T extends StoredObject>(
    object: ChangedObject,
    watched: Watched,
    resource: Resource<T>,
    contentOf: (object: T) => ConfigMapContent | SecretContent,
  ): void {
    const { namespace, name } = object;
    const set = (stored: T | undefined): void => {
      this.#set(object, watched, stored && contentOf(stored));
      if (stored?.immutable === true) watched.stop.abort(new Error("it never changes"));
    };
    const target = {
      name: `${object.kind} ${namespace}/${name}`,
      resource,
      namespace,
      fieldSelector: `metadata.name=${name}`,
    };
    const handler: ReflectorHandler<T> = {
      // An unreadable object is not missing.
      replaced: ([stored], unread) => void (unread.length === 0 && set(stored)),
      changed: (type, stored) => set(type === "DELETED" ? undefined : stored),
    };
    void this.#deps.watch(target, handler, watched.stop.signal);
  }

  #set(object: ChangedObject, watched: Watched, content: Watched["content"]): void {
    const isFirst = !watched.isKnown;
    // Equal content keeps the same object, so readers can skip it.
    if (!isFirst && isDeepStrictEqual(watched.content, content)) return;
    watched.content = content;
    watched.isKnown = true;
    watched.known.resolve();
    const { kind, namespace, name } = object;
    const what = content === undefined ? "does not exist" : isFirst ? "is available" : "has changed";
    const message = `${kind} ${namespace}/${name} ${what}`;
    const entry = this.#deps.journal.record({ kind: "input", what: "ObjectsChanged", message });
    this.#deps.objectsChanged([object], { code: "ObjectsChanged", message, entry });
  }

  #letGo(key: string, uid: PodUid): void {
    const watched = this.#watched.get(key);
    if (watched === undefined || !watched.users.delete(uid) || watched.users.size > 0) return;
    watched.stop.abort(new Error("no pod refers to it any more"));
    watched.known.resolve();
    this.#watched.delete(key);
  }
}

const configMaps: Resource<z.infer<typeof ConfigMap>> = {
  base: "/api/v1",
  plural: "configmaps",
  kind: "ConfigMap",
  decode: decoder(ConfigMap, "ConfigMap"),
};
export const secrets: Resource<z.infer<typeof Secret>> = {
  base: "/api/v1",
  plural: "secrets",
  kind: "Secret",
  decode: decoder(Secret, "Secret"),
};

function keysIn(namespace: string, referenced: ReturnType<typeof referencedObjects>): Set<string> {
  return new Set([
    ...[...referenced.configMaps].map((name) => keyOf("ConfigMap", namespace, name)),
    ...[...referenced.secrets].map((name) => keyOf("Secret", namespace, name)),
  ]);
}

function keyOf(kind: Kind, namespace: string, name: string): string {
  return `${kind} ${namespace}/${name}`;
}
