import type { z } from "zod";
import { ApiDecodeError } from "./api-error.ts";

/** Which version of which object. */
export interface ObjectVersion {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

/** What every object of the API has. */
export interface ApiObject {
  readonly metadata: ObjectVersion & {
    readonly name: string;
    readonly namespace?: string | undefined;
  };
}

/** A kind of objects, where it is and how it is read. */
export interface Resource<T extends ApiObject> {
  /** `/api/v1`, `/apis/coordination.k8s.io/v1` */
  readonly base: string;
  readonly plural: string;
  /** `Pod`; a collection's is `PodList`. */
  readonly kind: string;
  /**
   * Throws when the value is no such object.
   * @param before what the object of that name was last read as, if it is known
   */
  readonly decode: (value: unknown, before?: T) => T;
}

/** Which object, or which collection when there is no name. */
export interface ObjectPlace {
  readonly namespace?: string | undefined;
  readonly name?: string;
  /** `status`, `token` */
  readonly subresource?: string;
}

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** Path and query of an object or a collection, percent-encoded. */
export function resourcePath(
  { base, plural }: Pick<Resource<ApiObject>, "base" | "plural">,
  { namespace, name, subresource }: ObjectPlace = {},
  query: Query = {},
): string {
  const parts = [
    ...(namespace === undefined ? [] : ["namespaces", namespace]),
    plural,
    ...(name === undefined ? [] : [name]),
    ...(subresource === undefined ? [] : [subresource]),
  ];
  const pairs = Object.entries(query).flatMap(([key, value]) => (value === undefined ? [] : [[key, String(value)]]));
  const text = new URLSearchParams(pairs).toString();
  return `${[base, ...parts.map(encodeURIComponent)].join("/")}${text === "" ? "" : `?${text}`}`;
}

/**
 * The kind in an object, if it differs from the expected one: the response is then not from an API server. Objects of a
 * list may omit it. Pure.
 */
export function foreignKind(value: unknown, kind: string): string | undefined {
  const said: unknown = isRecord(value) ? value["kind"] : undefined;
  return typeof said === "string" && said !== "" && said !== kind ? said : undefined;
}

/** A reader of objects by their schema. What it reads is what the schema says, however much more there is. */
export function decoder<T extends ApiObject>(schema: z.ZodType<T>, kind: string): (value: unknown) => T {
  return (value) => {
    const result = schema.safeParse(value);
    if (result.success) return result.data;
    throw new ApiDecodeError(`${kind}: ${misfit("the object", result.error)}`);
  };
}

/** Field and type only: a value may be a secret. */
export function misfit(whole: string, { issues: [issue] }: z.ZodError): string {
  return `${issue?.path.join(".") || whole} does not fit (${issue?.code ?? ""})`;
}

/** An object without metadata.managedFields: unused here, and often half of its size. */
export function withoutManagedFields(value: unknown): unknown {
  const metadata: unknown = isRecord(value) ? value["metadata"] : undefined;
  if (isRecord(metadata)) Reflect.deleteProperty(metadata, "managedFields");
  return value;
}

/** Whether a value from the API server is this version of an object. Pure. */
export function isVersion(value: unknown, { uid, resourceVersion }: ObjectVersion): boolean {
  const metadata: unknown = isRecord(value) ? value["metadata"] : undefined;
  if (!isRecord(metadata) || !uid || !resourceVersion) return false;
  return metadata["uid"] === uid && metadata["resourceVersion"] === resourceVersion;
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
