import * as z from "zod";
import { trimmed } from "../base/trimmed.ts";

const orNothing = (text: unknown): unknown => (text === "" ? undefined : text);

/**
 * An optional text that is empty when unset: upstream's type is `string`, which has no other representation, and its
 * defaulting tests for "". If that type is a pointer (`*string`), an empty text is a value that validation accepts or
 * rejects: those fields are `z.string().optional()`.
 */
export const OptionalText = z.preprocess(orNothing, z.string().optional()).optional();

/** The same of a field that takes some texts only. */
export function optionalChoice<const T extends string>(texts: readonly T[]): z.ZodOptional<z.ZodType<T | undefined>> {
  return z.preprocess(orNothing, z.enum(texts).optional()).optional();
}

const mostInt32 = 2 ** 31 - 1;
/** A whole number of 32 bits. */
export const Int32 = z.int().refine((value) => value >= -mostInt32 - 1 && value <= mostInt32, {
  error: `the number is outside int32: ${-mostInt32 - 1} to ${mostInt32}`,
});
/** Kubernetes' IntOrString. */
export const IntOrString = z.union([Int32, z.string()]);
/** Space that Go's JSON keeps and its TrimSpace removes. */
const space = " \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000";

/**
 * A resource quantity as written (`100m`, `64Mi`, `2`), without the space around it; src/resources/quantity.ts parses
 * it.
 */
export const Quantity = z.union([z.string(), z.number()]).transform((written) => {
  return typeof written === "string" ? trimmed(written, space) : written;
});
export const StringMap = z.record(z.string(), z.string());
/**
 * Texts of an API object by keys that may be `__proto__`, as those of ConfigMaps and Secrets: a record of zod drops it.
 * The object stays as JSON.parse made it.
 */
export const DataMap = z.custom<Readonly<Record<string, string>>>((value) => {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject && Object.values(value).every((text) => typeof text === "string");
});
/** RFC 3339 text. */
export const Time = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d?:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)$/u, {
  error: 'expected a time such as "2026-01-31T08:00:00Z"',
});

export const OwnerReference = z.strictObject({
  apiVersion: z.string(),
  kind: z.string(),
  name: z.string(),
  uid: z.string(),
  controller: z.boolean().optional(),
  blockOwnerDeletion: z.boolean().optional(),
});

/** metav1.ObjectMeta. */
export const ObjectMeta = z.strictObject({
  name: OptionalText,
  generateName: OptionalText,
  namespace: OptionalText,
  selfLink: OptionalText,
  uid: OptionalText,
  resourceVersion: OptionalText,
  generation: z.int().optional(),
  creationTimestamp: Time.optional(),
  deletionTimestamp: Time.optional(),
  deletionGracePeriodSeconds: z.int().optional(),
  labels: StringMap.optional(),
  annotations: StringMap.optional(),
  ownerReferences: z.array(OwnerReference).optional(),
  finalizers: z.array(z.string()).optional(),
  managedFields: z.array(z.unknown()).optional(),
});

export const LabelSelector = z.strictObject({
  matchLabels: StringMap.optional(),
  matchExpressions: z
    .array(z.strictObject({ key: z.string(), operator: z.string(), values: z.array(z.string()).optional() }))
    .optional(),
});

/** metadata.name (and namespace, labels) of a stored object whose content the caller knows. */
export type ObjectMeta = z.infer<typeof ObjectMeta>;
