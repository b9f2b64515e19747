import { z } from "zod";

/** Kubernetes' IntOrString. */
export const IntOrString = z.union([z.int(), z.string()]);
/** A resource quantity as written (`100m`, `64Mi`, `2`); src/resources/quantity.ts parses it. */
export const Quantity = z.union([z.string(), z.number()]);
export const StringMap = z.record(z.string(), z.string());
/** RFC 3339 text. */
export const Time = z.string();

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
  name: z.string().optional(),
  generateName: z.string().optional(),
  namespace: z.string().optional(),
  selfLink: z.string().optional(),
  uid: z.string().optional(),
  resourceVersion: z.string().optional(),
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
