import * as z from "zod";

const OptionalText = z.string().optional();

/** storage.k8s.io/v1 CSINode as the kubelet writes it; other fields are preserved. */
export const CsiNode = z.looseObject({
  metadata: z.looseObject({
    name: z.string(),
    namespace: OptionalText,
    uid: OptionalText,
    resourceVersion: OptionalText,
    annotations: z.record(z.string(), z.string()).nullish(),
    ownerReferences: z.array(z.looseObject({ kind: z.string(), name: z.string(), uid: z.string() })).nullish(),
  }),
  spec: z.looseObject({
    drivers: z
      .array(
        z.looseObject({
          name: z.string(),
          nodeID: z.string(),
          topologyKeys: z.array(z.string()).nullish(),
          allocatable: z.looseObject({ count: z.number().nullish() }).nullish(),
        }),
      )
      .nullish(),
  }),
});
export type CsiNode = z.infer<typeof CsiNode>;
export type CsiNodeDriver = NonNullable<CsiNode["spec"]["drivers"]>[number];

/** storage.k8s.io/v1 CSIDriver, the part for nodes. The API server fills in its defaults. */
export const CsiDriver = z.object({
  metadata: z.object({ name: z.string(), namespace: OptionalText, resourceVersion: OptionalText }),
  spec: z.object({
    attachRequired: z.boolean().nullish(),
    podInfoOnMount: z.boolean().nullish(),
    volumeLifecycleModes: z.array(z.string()).nullish(),
    fsGroupPolicy: z.string().nullish(),
    tokenRequests: z
      .array(z.object({ audience: z.string().default(""), expirationSeconds: z.number().nullish() }))
      .nullish(),
    serviceAccountTokenInSecrets: z.boolean().nullish(),
    requiresRepublish: z.boolean().nullish(),
    seLinuxMount: z.boolean().nullish(),
    nodeAllocatableUpdatePeriodSeconds: z.number().positive().nullish(),
  }),
});
export type CsiDriver = z.infer<typeof CsiDriver>;
