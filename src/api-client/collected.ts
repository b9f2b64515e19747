import { ApiDecodeError } from "./api-error.ts";
import { type ApiObject, isRecord } from "./resource.ts";

/** A whole collection, as it arrives. An undecodable object stays in its last version: it must not count as deleted. */
export class Collected<T extends ApiObject> {
  readonly objects = new Map<string, T>();
  readonly #before: ReadonlyMap<string, T>;
  readonly #unread = new Map<string, string>();

  constructor(before: ReadonlyMap<string, T>) {
    this.#before = before;
  }

  /** UIDs of those that were never read. */
  get unread(): readonly string[] {
    return [...this.#unread.values()];
  }

  /**
   * @param object what the value stands for; undefined: it can't be read
   * @throws ApiDecodeError for what can't be read and may be any object
   */
  set(value: unknown, object: T | undefined): void {
    const key = object === undefined ? nameOf(value) : keyOf(object);
    if (key === undefined) throw new ApiDecodeError("an object without a name");
    this.delete(value);
    const uid = uidOf(value);
    const known = object ?? this.#before.get(key);
    if (known !== undefined && (uid === undefined || known.metadata.uid === undefined || known.metadata.uid === uid)) {
      this.objects.set(key, known);
    } else if (uid !== undefined) {
      this.#unread.set(key, uid);
    } else {
      throw new ApiDecodeError(`cannot read ${key.replace(/^\//u, "")}, which has no UID`);
    }
  }

  delete(value: unknown): void {
    const key = nameOf(value);
    if (key === undefined) return;
    this.objects.delete(key);
    this.#unread.delete(key);
  }
}

/** `<namespace>/<name>`, of a cluster's objects `/<name>`. */
export function keyOf({ metadata }: ApiObject): string {
  return `${metadata.namespace ?? ""}/${metadata.name}`;
}

/** {@link keyOf} of an object as it came. */
export function nameOf(value: unknown): string | undefined {
  const name = metadataText(value, "name");
  return name && `${metadataText(value, "namespace") ?? ""}/${name}`;
}

/** metadata.uid of an object as it came. */
export function uidOf(value: unknown): string | undefined {
  return metadataText(value, "uid");
}

/** A text field of an undecoded object's metadata; undefined if it is not a text. */
export function metadataText(value: unknown, field: string): string | undefined {
  const metadata: unknown = isRecord(value) ? value["metadata"] : undefined;
  const text: unknown = isRecord(metadata) ? metadata[field] : undefined;
  return typeof text === "string" ? text : undefined;
}

/** metadata.resourceVersion of an object as it came. */
export function versionOf(value: unknown): string | undefined {
  return metadataText(value, "resourceVersion");
}
